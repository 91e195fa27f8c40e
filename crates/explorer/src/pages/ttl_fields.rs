//! The form fields of a time to live: its mode, a number, and a unit.

use document::{Object, Value};
use engine::DefaultTtl;
use maud::{Markup, html};

use crate::fields::Fields;

const UNITS: [(&str, u64); 4] = [("seconds", 1), ("minutes", 60), ("hours", 3600), ("days", 86_400)];

/// Returns the fields.
pub(crate) fn fields(current: DefaultTtl) -> Markup {
    let seconds = match current {
        DefaultTtl::Seconds(seconds) => Some(u64::from(seconds)),
        DefaultTtl::Off | DefaultTtl::Never => None,
    };
    // The largest unit that divides it.
    let unit = UNITS.iter().rev().find(|(_, length)| seconds.is_some_and(|it| it.is_multiple_of(*length)));
    let (unit, length) = unit.copied().unwrap_or(("seconds", 1));
    html! {
        fieldset.ttl {
            legend { "Time to live" }
            label { input type="radio" name="ttl" value="off" checked[current == DefaultTtl::Off]; " Off: nothing expires" }
            label { input type="radio" name="ttl" value="own" checked[current == DefaultTtl::Never]; " Only items with a " code { "ttl" } " of their own" }
            label {
                input type="radio" name="ttl" value="after" checked[seconds.is_some()]; " After the last write: "
                input type="number" name="amount" min="1" step="1" value=[seconds.map(|it| it / length)] aria-label="How long";
                " "
                select name="unit" aria-label="Unit" {
                    @for (name, _) in UNITS { option value=(name) selected[name == unit] { (name) } }
                }
            }
        }
    }
}

/// Returns the fields with values, hidden.
pub(crate) fn hidden(ttl: DefaultTtl) -> Markup {
    let (word, amount) = match ttl {
        DefaultTtl::Off => ("off", None),
        DefaultTtl::Never => ("own", None),
        DefaultTtl::Seconds(seconds) => ("after", Some(seconds)),
    };
    html! {
        input type="hidden" name="ttl" value=(word);
        @if let Some(amount) = amount {
            input type="hidden" name="amount" value=(amount);
            input type="hidden" name="unit" value="seconds";
        }
    }
}

/// Reads the fields.
pub(crate) fn read(form: &Fields) -> Result<DefaultTtl, String> {
    match form.text("ttl") {
        None | Some("off") => Ok(DefaultTtl::Off),
        Some("own") => Ok(DefaultTtl::Never),
        Some("after") => {
            let unit = form.text("unit").unwrap_or("seconds");
            let length = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, length)| *length);
            let amount = form.filled("amount").and_then(|text| text.parse::<u64>().ok());
            let seconds = amount.zip(length).and_then(|(amount, length)| amount.checked_mul(length));
            let seconds = seconds.and_then(|it| i64::try_from(it).ok()).map(Value::Int);
            let refused = || {
                "A time to live is a whole number, of 2147483647 seconds at most and at least 1.".to_owned()
            };
            DefaultTtl::from_member(Some(&seconds.ok_or_else(refused)?)).map_err(|_| refused())
        }
        Some(_) => Err("A time to live is off, only by items' own, or after a number of seconds.".to_owned()),
    }
}

/// Returns the time to live in a form, for the audit log.
pub(crate) fn settings(form: &Fields) -> Object {
    let ttl = read(form).ok().map(|ttl| ("defaultTtl", ttl.to_member().unwrap_or(Value::Null)));
    ttl.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_filled_in_is_read() {
        let read = |text: &str| read(&Fields::parse(text.as_bytes()));
        assert_eq!(read(""), Ok(DefaultTtl::Off));
        assert_eq!(read("ttl=own&amount=5"), Ok(DefaultTtl::Never));
        assert_eq!(read("ttl=after&amount=2&unit=hours"), Ok(DefaultTtl::Seconds(7200)));
        assert_eq!(read("ttl=after&amount=2147483647&unit=seconds"), Ok(DefaultTtl::Seconds(2_147_483_647)));
        for wrong in [
            "ttl=after",
            "ttl=after&amount=0",
            "ttl=after&amount=-1",
            "ttl=after&amount=1.5",
            "ttl=x",
            "ttl=after&amount=1&unit=x",
            "ttl=after&amount=24856&unit=days",
            "ttl=after&amount=18446744073709551615&unit=days",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
