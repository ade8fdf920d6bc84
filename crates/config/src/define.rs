/// Whether a running server takes over a changed value on HUP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reload {
    /// At once.
    Hup,
    /// With the next start; a reload names the key in the log and keeps the old value.
    Restart,
}

/// One key, for the reference page and for error messages.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name in the file, and of the field.
    pub name: &'static str,
    /// What it means.
    pub doc: &'static [&'static str],
    /// Unit, or kind of value.
    pub unit: &'static str,
    /// What more of it costs.
    pub cost: &'static str,
    /// Whether HUP takes it over.
    pub reload: Reload,
    /// The default as it would be written in the file.
    pub default: fn() -> String,
    /// What is allowed, in words.
    pub allowed: fn() -> String,
}

/// One table of the file.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// Its name in brackets; empty: keys before the first table.
    pub name: &'static str,
    /// What it is about.
    pub doc: &'static [&'static str],
    /// Its keys.
    pub keys: &'static [Key],
}

/// The definition of all settings: see `settings.rs`.
macro_rules! settings {
    ($(
        $(#[doc = $section_doc:literal])*
        $field:ident: $Section:ident = $section:literal {
            $(
                $(#[doc = $doc:literal])*
                $key:ident: $ty:ty = $default:expr, $bounds:expr, unit $unit:literal, cost $cost:literal, $reload:ident;
            )*
        }
    )*) => {
        $(
            $(#[doc = $section_doc])*
            #[derive(Clone, Debug, PartialEq)]
            pub struct $Section {
                $( $(#[doc = $doc])* pub $key: $ty, )*
            }

            impl Default for $Section {
                fn default() -> Self {
                    Self { $( $key: $default, )* }
                }
            }
        )*

        /// All settings. Field by field the same as the file, table by table.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Config {
            $( $(#[doc = $section_doc])* pub $field: $Section, )*
        }

        /// Every table and every key.
        pub const SECTIONS: &[Section] = &[
            $( Section {
                name: $section,
                doc: &[$($section_doc),*],
                keys: &[$( Key {
                    name: stringify!($key),
                    doc: &[$($doc),*],
                    unit: $unit,
                    cost: $cost,
                    reload: Reload::$reload,
                    default: || <$ty as Value>::show(&$default),
                    allowed: || <$ty as Value>::allowed($bounds),
                }, )*],
            }, )*
        ];

        impl Config {
            /// Sets one key from its TOML value.
            pub(crate) fn set(&mut self, section: &str, key: &str, value: &DeValue<'_>) -> Result<(), String> {
                match (section, key) {
                    $( $( ($section, stringify!($key)) => {
                        self.$field.$key = <$ty as Value>::read(value, $bounds)?;
                    } )* )*
                    _ => unreachable!("only keys of SECTIONS are set"),
                }
                Ok(())
            }

            /// What a running server with these settings becomes when `new` is loaded: the keys that reload are new, the others
            /// stay. The second value names the keys that differ and need a restart.
            #[must_use]
            pub fn reloaded(&self, new: &Self) -> (Self, Vec<String>) {
                let mut merged = new.clone();
                let mut kept = Vec::new();
                $( $(
                    if Reload::$reload == Reload::Restart && self.$field.$key != new.$field.$key {
                        merged.$field.$key = self.$field.$key.clone();
                        kept.push(dotted($section, stringify!($key)));
                    }
                )* )*
                (merged, kept)
            }

            /// Every key with its value as it would be written in the file.
            pub fn each(&self, mut f: impl FnMut(&'static str, &'static str, String)) {
                $( $( f($section, stringify!($key), Value::show(&self.$field.$key)); )* )*
            }
        }
    };
}
pub(crate) use settings;

/// `table.key`, or only the key when it stands before the first table.
pub(crate) fn dotted(section: &str, key: &str) -> String {
    if section.is_empty() {
        key.to_owned()
    } else {
        format!("{section}.{key}")
    }
}
