use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;
use toml::de::DeValue;

/// Bounds of a number, both ends included.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bounds {
    /// The type says it all.
    Any,
    /// From, to.
    Within(u64, u64),
}

/// What a key may hold.
pub(crate) trait Value: Sized {
    /// Reads a TOML value; an error says what was expected.
    fn read(value: &DeValue<'_>, bounds: Bounds) -> Result<Self, String>;
    /// As it would be written in the file.
    fn show(&self) -> String;
    /// What is allowed, in words.
    fn allowed(bounds: Bounds) -> String;
}

macro_rules! number {
    ($($ty:ty)*) => { $(
        impl Value for $ty {
            fn read(value: &DeValue<'_>, bounds: Bounds) -> Result<Self, String> {
                let expected = || format!("expected {}", Self::allowed(bounds));
                let Some(number) = value.as_integer() else {
                    return Err(format!("{}, found {}", expected(), found(value)));
                };
                let (low, high) = ends(bounds, <$ty>::MAX as u64);
                u64::from_str_radix(number.as_str(), number.radix())
                    .ok()
                    .filter(|n| (low..=high).contains(n))
                    .and_then(|n| Self::try_from(n).ok())
                    .ok_or_else(|| format!("{}, found {}", expected(), number.as_str()))
            }
            fn show(&self) -> String {
                grouped(u64::from(*self))
            }
            fn allowed(bounds: Bounds) -> String {
                let (low, high) = ends(bounds, <$ty>::MAX as u64);
                format!("a number from {} to {}", grouped(low), grouped(high))
            }
        }
    )* };
}
number!(u8 u16 u32 u64);

fn ends(bounds: Bounds, type_max: u64) -> (u64, u64) {
    match bounds {
        Bounds::Any => (0, type_max),
        Bounds::Within(low, high) => (low, high),
    }
}

/// `1000000` as `1_000_000`, which TOML reads too.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && digits.len() > 4 && (digits.len() - index).is_multiple_of(3) {
            out.push('_');
        }
        out.push(digit);
    }
    out
}

impl Value for bool {
    fn read(value: &DeValue<'_>, bounds: Bounds) -> Result<Self, String> {
        match (value.as_str(), value.as_bool()) {
            (Some("on"), _) | (_, Some(true)) => Ok(true),
            (Some("off"), _) | (_, Some(false)) => Ok(false),
            _ => Err(format!(
                "expected {}, found {}",
                Self::allowed(bounds),
                found(value)
            )),
        }
    }
    fn show(&self) -> String {
        String::from(if *self { "\"on\"" } else { "\"off\"" })
    }
    fn allowed(_: Bounds) -> String {
        String::from("\"on\" or \"off\"")
    }
}

fn text<'a>(value: &'a DeValue<'_>, example: &str) -> Result<&'a str, String> {
    value
        .as_str()
        .ok_or_else(|| format!("expected a text in quotes{example}, found {}", found(value)))
}

impl Value for String {
    fn read(value: &DeValue<'_>, _: Bounds) -> Result<Self, String> {
        let text = text(value, "")?;
        if text.bytes().any(|b| b.is_ascii_control()) {
            return Err(String::from("expected a text without control characters"));
        }
        Ok(text.to_owned())
    }
    fn show(&self) -> String {
        format!("{self:?}")
    }
    fn allowed(_: Bounds) -> String {
        String::from("a text on one line")
    }
}

impl Value for PathBuf {
    fn read(value: &DeValue<'_>, _: Bounds) -> Result<Self, String> {
        match text(value, ", a path")? {
            "" => Err(String::from("expected a path, found an empty text")),
            path => Ok(Self::from(path)),
        }
    }
    fn show(&self) -> String {
        format!("{:?}", self.display().to_string())
    }
    fn allowed(_: Bounds) -> String {
        String::from("a path; a relative one starts where the server was started")
    }
}

/// A type that is written as a text, with the words for the reference page.
pub(crate) trait Text: FromStr<Err = String> + Display {
    const ONE: &'static str;
    const MANY: &'static str;
}

impl Text for crate::Listen {
    const ONE: &'static str = "`udp://ADDRESS:PORT` or `tcp://ADDRESS:PORT`";
    const MANY: &'static str = "a list of `udp://ADDRESS:PORT` and `tcp://ADDRESS:PORT`";
}
impl Text for crate::Domain {
    const ONE: &'static str = "a host name or an IP address";
    const MANY: &'static str = "a list of host names";
}
impl Text for crate::Nameserver {
    const ONE: &'static str = "an IP address, with or without a port";
    const MANY: &'static str = "a list of IP addresses, with or without a port";
}

impl<T: Text> Value for Vec<T> {
    fn read(value: &DeValue<'_>, bounds: Bounds) -> Result<Self, String> {
        let wrong = |v| format!("expected {}, found {}", Self::allowed(bounds), found(v));
        let items = value.as_array().ok_or_else(|| wrong(value))?;
        items
            .iter()
            .map(|item| {
                let item = item.get_ref();
                item.as_str().ok_or_else(|| wrong(item))?.parse()
            })
            .collect()
    }
    fn show(&self) -> String {
        let items: Vec<_> = self.iter().map(|item| format!("\"{item}\"")).collect();
        format!("[{}]", items.join(", "))
    }
    fn allowed(_: Bounds) -> String {
        T::MANY.to_owned()
    }
}

impl<T: Text> Value for Option<T> {
    fn read(value: &DeValue<'_>, _: Bounds) -> Result<Self, String> {
        text(value, &format!(", {}", T::ONE))?.parse().map(Some)
    }
    fn show(&self) -> String {
        self.as_ref()
            .map_or_else(|| String::from("not set"), |v| format!("\"{v}\""))
    }
    fn allowed(_: Bounds) -> String {
        T::ONE.to_owned()
    }
}

/// What was found, for an error message.
fn found(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the text {text:?}"),
        DeValue::Integer(number) => format!("the number {}", number.as_str()),
        DeValue::Float(number) => format!("the number {}", number.as_str()),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(_) => String::from("a date"),
        DeValue::Array(_) => String::from("a list"),
        DeValue::Table(_) => String::from("a table"),
    }
}
