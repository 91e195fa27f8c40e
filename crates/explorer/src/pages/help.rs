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
            h2 { "Words" }
            dl.words {
                dt { "Time to live" } dd { "Seconds from an item's last write to its death. The container's default applies to items without a " code { "ttl" } " of their own; " code { "-1" } " means never." }
                dt { "Dead" } dd { "Expired. No request sees it any more, whether or not its bytes are still there." }
                dt { "Backlog" } dd { "What is dead and not removed yet. Only its bytes wait; nobody can read it." }
                dt { "Dry run" } dd { "What a change would kill at once, counted without changing anything." }
                dt { "Hold" } dd { "While it lasts, nothing in it dies, is changed or deleted." }
            }
        }
    };
    visit.show("Help", None, &inner).await
}
