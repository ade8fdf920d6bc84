//! Settings: one definition gives the parser, the defaults and the reference page.
