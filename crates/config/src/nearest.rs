/// The candidate that `word` was probably meant to be; `None` when none is near.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    candidates
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|&(d, candidate)| d <= (candidate.len().max(word.len()) / 3).max(2))
        .min_by_key(|&(d, _)| d)
        .map(|(_, candidate)| candidate)
}

/// Edit distance: insertions, deletions, replacements, and swaps of neighbours count one each.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    rows[0] = (0..=b.len()).collect();
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_finds_its_key_and_nonsense_finds_none() {
        let keys = ["listen", "data", "domains", "workers", "auth"];
        for (word, expected) in [
            ("lisetn", Some("listen")),
            ("domain", Some("domains")),
            ("worker_count", None),
            ("xyzzy", None),
            ("auht", Some("auth")),
        ] {
            assert_eq!(nearest(word, keys.into_iter()), expected, "{word}");
        }
    }
}
