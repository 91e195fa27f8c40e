//! Keys and words.

use maud::html;

use crate::visit::Visit;
use crate::visit::answer::{Answer, Fault};

const SHORTCUTS: &[(&str, &str)] = &[
    ("?", "this page"),
    ("g d", "databases"),
    ("g c", "clock"),
    ("g p", "purge"),
    ("g u", "users"),
    ("g k", "keys"),
    ("g n", "new container"),
    ("g i", "items of the container"),
    ("g q", "query"),
    ("g t", "timeline"),
    ("g f", "feed"),
    ("g h", "holds"),
    ("g s", "settings"),
    ("j  k", "next and previous row"),
    ("Enter", "open the row"),
    ("n  p", "next and first page of a list"),
    ("/", "into the filter or the query"),
    ("a", "new item"),
    ("Ctrl Enter", "send the form that you are in"),
    ("Esc", "out of a field"),
];

pub(crate) async fn show(visit: &Visit) -> Result<Answer, Fault> {
    let inner = html! {
        h1 { "Help" }
        section.card {
            h2 { "Keys" }
            dl.shortcuts {
                @for (keys, what) in SHORTCUTS {
                    dt { @for key in keys.split(' ').filter(|key| !key.is_empty()) { kbd { (key) } } }
                    dd { (what) }
                }
            }
        }
        section.card {
            h2 { "Terms" }
            dl.words {
                dt { "Time to live" } dd { "Seconds from an item's last write to its expiry. The container's default applies to items without a " code { "ttl" } " of their own; " code { "-1" } " means never." }
                dt { "Expired" } dd { "Past its time to live. No request sees the item any more, whether or not its bytes are still there." }
                dt { "Backlog" } dd { "Expired items that are not removed yet. Only their bytes are left; no request can read them." }
                dt { "Dry run" } dd { "Counts what a change would expire at once, without changing anything." }
                dt { "Hold" } dd { "While it lasts, nothing in it expires, is changed or deleted." }
            }
        }
    };
    visit.show("Help", None, &inner).await
}
