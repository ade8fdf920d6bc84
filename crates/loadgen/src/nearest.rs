//! What was probably meant.

/// The name that is most like `word`, if one is; the first of several that are as near.
pub(crate) fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    names
        .into_iter()
        .map(|name| (strsim::osa_distance(word, name), name))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, name)| *distance <= name.len().div_ceil(2).min(3))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_told_and_a_far_one_is_not() {
        let names = ["register", "call", "options"];
        assert_eq!(nearest("registr", names), Some("register"));
        assert_eq!(nearest("cal", names), Some("call"));
        assert_eq!(nearest("teapot", names), None);
    }
}
