use location::Wall;

/// A date as the Date header wants it (RFC 3261 section 20.17): `Sat, 13 Nov 2010 23:29:00 GMT`. Years beyond 9999 read as 9999.
pub(super) fn imf_fixdate(wall: Wall) -> [u8; 29] {
    const DAYS: &[u8; 21] = b"ThuFriSatSunMonTueWed"; // the first of January 1970 was a Thursday
    const MONTHS: &[u8; 36] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
    let seconds = wall.0 / 1000;
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let mut text = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    let week_day = (days % 7) as usize * 3;
    text[..3].copy_from_slice(&DAYS[week_day..week_day + 3]);
    let month = (month as usize - 1) * 3;
    text[8..11].copy_from_slice(&MONTHS[month..month + 3]);
    let year = year.min(9999);
    for (at, two) in [
        (5, day),
        (12, year / 100),
        (14, year % 100),
        (17, second / 3600),
        (20, second / 60 % 60),
        (23, second % 60),
    ] {
        text[at] = b'0' + (two / 10) as u8;
        text[at + 1] = b'0' + (two % 10) as u8;
    }
    text
}

/// Year, month and day, from days since 1970. Counted in eras of 400 years that begin on the first of March, so that the
/// leap day is a year's last.
const fn civil(days: u64) -> (u64, u64, u64) {
    const ERA_DAYS: u64 = 146_097;
    let days = days + 719_468; // since the first of March of the year 0
    let era = days / ERA_DAYS;
    let day_of_era = days % ERA_DAYS;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era;
    (if month <= 2 { year + 1 } else { year }, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_read_as_the_header_wants_them() {
        for (seconds, text) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (951_782_399, "Mon, 28 Feb 2000 23:59:59 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_289_690_940, "Sat, 13 Nov 2010 23:29:00 GMT"),
            (1_709_251_199, "Thu, 29 Feb 2024 23:59:59 GMT"),
            (1_735_689_599, "Tue, 31 Dec 2024 23:59:59 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        ] {
            let date = imf_fixdate(Wall(seconds * 1000 + 999));
            assert_eq!(std::str::from_utf8(&date), Ok(text));
        }
    }

    #[test]
    fn the_end_of_time_is_still_a_date() {
        assert_eq!(imf_fixdate(Wall(u64::MAX)).len(), 29);
    }
}
