use crate::{Flow, Wall};

/// One binding, compact (aim: 300 bytes with its strings): one allocation holds all text.
#[derive(Clone, Debug)]
pub struct Binding {}

/// What a binding is made from, and what it reads as.
#[derive(Clone, Copy, Debug)]
pub struct BindingParts<'a> {
    /// The Contact's URI, byte for byte as the phone sent it.
    pub contact: &'a [u8],
    /// The Contact's header parameters, byte for byte, `expires` taken out: `;q=0.7;+sip.instance="..."`.
    pub params: &'a [u8],
    /// Identity of the phone, `+sip.instance` without quotes; empty when it gave none.
    pub instance: &'a [u8],
    /// `reg-id` (RFC 5626); 0 when it gave none.
    pub reg_id: u32,
    /// Preference in thousandths, 0 to 1000 (RFC 3261 section 20.10).
    pub q: u16,
    /// Call-ID of the REGISTER that made or refreshed it.
    pub call_id: &'a [u8],
    /// Its CSeq number.
    pub cseq: u32,
    /// When it ends.
    pub expires: Wall,
    /// The flow it came on.
    pub flow: Flow,
    /// The contact does not say where it came from: reach it over the flow, not by the URI.
    pub behind_nat: bool,
    /// Path values, comma-separated (RFC 3327); empty when none.
    pub path: &'a [u8],
    /// User-Agent, for people; cut to 64 bytes.
    pub user_agent: &'a [u8],
}

impl Binding {
    /// Packs the parts.
    #[must_use]
    pub fn new(parts: &BindingParts<'_>) -> Self {
        let _ = parts;
        todo!()
    }
    /// Unpacks them.
    #[must_use]
    pub fn parts(&self) -> BindingParts<'_> {
        todo!()
    }
    /// When it ends.
    #[must_use]
    pub fn expires(&self) -> Wall {
        todo!()
    }
    /// A refresh that changes nothing but these: in place, no allocation when the Call-ID is the same.
    pub fn refresh(&mut self, call_id: &[u8], cseq: u32, expires: Wall, flow: Flow) {
        let _ = (call_id, cseq, expires, flow);
        todo!()
    }
}

/// The bindings of one address-of-record, oldest first, while [`crate::Location::update`] holds them. Expired ones are gone already.
pub struct Bindings<'a> {
    _p: std::marker::PhantomData<&'a mut ()>,
}

impl Bindings<'_> {
    /// They.
    #[must_use]
    pub fn list(&self) -> &[Binding] {
        todo!()
    }
    /// To change one in place; marks the address-of-record as changed.
    pub fn at(&mut self, index: usize) -> &mut Binding {
        let _ = index;
        todo!()
    }
    /// Adds one.
    pub fn push(&mut self, binding: Binding) {
        let _ = binding;
        todo!()
    }
    /// Removes one.
    pub fn remove(&mut self, index: usize) {
        let _ = index;
        todo!()
    }
    /// Removes all.
    pub fn clear(&mut self) {
        todo!()
    }
}
