//! Timestamps between microseconds since 1970 (UTC) and the servers' text.
//!
//! Days and civil dates: Hinnant, "chrono-Compatible Low-Level Date Algorithms".

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;

/// Years whose microseconds fit 64 bits.
const YEAR_CEILING: i64 = 290_000;

fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let shifted = if month <= 2 { year - 1 } else { year };
    let era = shifted.div_euclid(400);
    let year_of_era = shifted.rem_euclid(400);
    let month = i64::from(month);
    let day_of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day_of_year - (153 * shifted_month + 2) / 5 + 1)
}

/// Microseconds since 1970 of a civil time.
pub(crate) fn micros(year: i64, month: u32, day: u32, clock: [u32; 3], micros: u32) -> i64 {
    let [hour, minute, second] = clock.map(i64::from);
    days_from_civil(year, month, day) * MICROS_PER_DAY
        + (hour * 3600 + minute * 60 + second) * MICROS_PER_SECOND
        + i64::from(micros)
}

/// `2026-01-31 12:34:56.000789`.
pub(crate) fn timestamp_text(us: i64) -> String {
    let (year, month, day) = civil_from_days(us.div_euclid(MICROS_PER_DAY));
    let rest = us.rem_euclid(MICROS_PER_DAY);
    let (seconds, fraction) = (rest / MICROS_PER_SECOND, rest % MICROS_PER_SECOND);
    let clock = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {clock}.{fraction:06}")
}

/// Reads `2026-01-31`, `2026-01-31 12:34:56`, with up to six decimals and `+00` or `Z` behind.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let text = text.trim_end_matches('Z').trim_end_matches("+00");
    let (date, clock) = text.split_once([' ', 'T']).unwrap_or((text, "00:00:00"));
    let mut parts = date.splitn(3, '-');
    let year: i64 = parts.next()?.parse().ok()?;
    let (month, day): (u32, u32) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let (whole, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut numbers = whole.splitn(3, ':').map(|part| part.parse::<u32>().ok());
    let clock = [numbers.next()??, numbers.next()??, numbers.next()??];
    if year.abs() > YEAR_CEILING || month > 12 || day > 31 || clock.into_iter().any(|number| number > 60) {
        return None;
    }
    let padded = format!("{fraction:0<6}");
    Some(micros(year, month, day, clock, padded.get(..6)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_survive_both_ways() {
        for us in [0, 1, -1, 1_000_000, 951_782_400_000_000, 4_102_444_799_999_999, -62_135_596_800_000_000] {
            assert_eq!(parse(&timestamp_text(us)), Some(us), "{}", timestamp_text(us));
        }
        assert_eq!(timestamp_text(0), "1970-01-01 00:00:00.000000");
        assert_eq!(parse("2000-02-29"), Some(951_782_400_000_000));
        assert_eq!(parse("2000-02-29 00:00:00.5+00"), Some(951_782_400_500_000));
        for text in ["soon", "300000-01-01", "9223372036854775807-01-01", "2000-4000000000-01", "2000-01-99"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
