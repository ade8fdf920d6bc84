use crate::{Header, Span};

/// One value of a comma-separated header, and where it is.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Value<'a> {
    pub text: &'a [u8],
    pub span: Span,
    /// The field it stands in.
    pub header: Header<'a>,
    /// First and last in its field: when both, removing the value removes the field.
    pub first: bool,
    pub last: bool,
}

/// Iterator over the comma-separated values of all fields of one name; commas in quotes and angle brackets do not separate.
pub struct Values<'a> {
    _p: std::marker::PhantomData<&'a ()>,
}
impl<'a> Iterator for Values<'a> {
    type Item = Value<'a>;
    fn next(&mut self) -> Option<Value<'a>> {
        todo!()
    }
}
