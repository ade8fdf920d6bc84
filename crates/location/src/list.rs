use std::ops::{Deref, DerefMut};
use std::slice;

use crate::Binding;

/// The bindings of one address-of-record, in 16 bytes, and without an allocation of its own for the common one phone.
#[derive(Clone)]
#[expect(
    clippy::box_collection,
    reason = "a vector itself would make every list larger"
)]
pub(crate) enum List {
    One(Binding),
    Many(Option<Box<Vec<Binding>>>),
}

const _: () = assert!(size_of::<List>() == 16);

impl List {
    pub(crate) const fn new() -> Self {
        Self::Many(None)
    }

    pub(crate) fn push(&mut self, binding: Binding) {
        *self = match std::mem::take(self) {
            Self::Many(None) => Self::One(binding),
            Self::One(first) => Self::Many(Some(Box::new(vec![first, binding]))),
            Self::Many(Some(mut many)) => {
                many.push(binding);
                Self::Many(Some(many))
            }
        };
    }

    pub(crate) fn remove(&mut self, index: usize) {
        let mut at = 0;
        assert!(index < self.len(), "no binding at {index}");
        self.retain(|_| {
            at += 1;
            at - 1 != index
        });
    }

    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&Binding) -> bool) {
        match self {
            Self::One(binding) if !keep(binding) => *self = Self::new(),
            Self::Many(Some(many)) => {
                many.retain(keep);
                if many.is_empty() {
                    *self = Self::new();
                }
            }
            Self::One(_) | Self::Many(None) => {}
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new();
    }
}

impl Default for List {
    fn default() -> Self {
        Self::new()
    }
}

impl Deref for List {
    type Target = [Binding];
    fn deref(&self) -> &[Binding] {
        match self {
            Self::One(binding) => slice::from_ref(binding),
            Self::Many(None) => &[],
            Self::Many(Some(many)) => many,
        }
    }
}

impl DerefMut for List {
    fn deref_mut(&mut self) -> &mut [Binding] {
        match self {
            Self::One(binding) => slice::from_mut(binding),
            Self::Many(None) => &mut [],
            Self::Many(Some(many)) => many,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::binding;

    #[test]
    fn it_does_as_a_vector_does() {
        let bindings: Vec<_> = ["sip:0", "sip:1", "sip:2"].map(|c| binding(c, 60)).into();
        let mut list = List::new();
        for count in 0..3 {
            assert_eq!(list[..], bindings[..count]);
            list.push(bindings[count].clone());
        }
        for index in 0..3 {
            let mut list = list.clone();
            let mut vector = bindings.clone();
            list.remove(index);
            vector.remove(index);
            assert_eq!(list[..], vector[..]);
        }
        for _ in 0..3 {
            list.remove(0);
        }
        assert!(list.is_empty());
        list.push(bindings[1].clone());
        list[0] = bindings[2].clone();
        assert_eq!(list[..], bindings[2..]);
        list.clear();
        assert!(list.is_empty());
    }
}
