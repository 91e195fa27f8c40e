//! Rids, etags and the rules for ids.

use document::{
    ContainerRid, DatabaseRid, Etag, ItemRid, OfferRid, PermissionRid, RangeRid, ScriptKind, ScriptRid,
    Sequence, UserRid, check_item_id, check_resource_id,
};
use proptest::prelude::*;

#[test]
fn rids_have_the_text_that_clients_take_apart() {
    let container = ContainerRid { database: 1, container: 2 };
    let user = UserRid { database: 1, user: 3 };
    assert_eq!(DatabaseRid(1).to_string(), "AAAAAQ==");
    assert_eq!(DatabaseRid(0xFFFF_FFFF).to_string(), "-----w==");
    assert_eq!(container.to_string(), "AAAAAYAAAAI=");
    assert_eq!(ItemRid { container, number: 5 }.to_string(), "AAAAAYAAAAIFAAAAAAAAAA==");
    assert_eq!(RangeRid { container, number: 0 }.to_string(), "AAAAAYAAAAIAAAAAAAAAUA==");
    let script = |kind| ScriptRid { container, kind, number: 1 }.to_string();
    assert_eq!(script(ScriptKind::Function), "AAAAAYAAAAIBAAAAAAAAYA==");
    assert_eq!(script(ScriptKind::Trigger), "AAAAAYAAAAIBAAAAAAAAcA==");
    assert_eq!(script(ScriptKind::StoredProcedure), "AAAAAYAAAAIBAAAAAAAAgA==");
    assert_eq!(user.to_string(), "AAAAAQAAAAM=");
    assert_eq!(PermissionRid { user, number: 4 }.to_string(), "AAAAAQAAAAMEAAAAAAAAAA==");
    assert_eq!(OfferRid(1).to_string(), "AAAB");
}

proptest! {
    #[test]
    fn rids_read_back(database: u32, child in 0_u32..1 << 31, number in 0_u64..1 << 60) {
        let container = ContainerRid { database, container: child };
        let user = UserRid { database, user: child };
        let item = ItemRid { container, number };
        let range = RangeRid { container, number };
        let permission = PermissionRid { user, number };
        let trigger = ScriptRid { container, kind: ScriptKind::Trigger, number };
        prop_assert_eq!(DatabaseRid(database).to_string().parse::<DatabaseRid>().unwrap(), DatabaseRid(database));
        prop_assert_eq!(container.to_string().parse::<ContainerRid>().unwrap(), container);
        prop_assert_eq!(user.to_string().parse::<UserRid>().unwrap(), user);
        prop_assert_eq!(item.to_string().parse::<ItemRid>().unwrap(), item);
        prop_assert_eq!(range.to_string().parse::<RangeRid>().unwrap(), range);
        prop_assert_eq!(permission.to_string().parse::<PermissionRid>().unwrap(), permission);
        prop_assert_eq!(trigger.to_string().parse::<ScriptRid>().unwrap(), trigger);
        // No kind is taken for another.
        prop_assert!(user.to_string().parse::<ContainerRid>().is_err());
        prop_assert!(container.to_string().parse::<UserRid>().is_err());
        prop_assert!(range.to_string().parse::<ItemRid>().is_err());
        prop_assert!(permission.to_string().parse::<ItemRid>().is_err());
        prop_assert!(item.to_string().parse::<ScriptRid>().is_err());
        prop_assert!(item.to_string().parse::<PermissionRid>().is_err());
    }

    #[test]
    fn strange_text_is_no_rid(text in any::<String>()) {
        let _ = (text.parse::<DatabaseRid>(), text.parse::<ContainerRid>(), text.parse::<ItemRid>());
    }
}

#[test]
fn names_are_not_taken_for_rids() {
    for text in ["", "AAAAAQ", "AAAAAQ=", "AAAA/Q==", "abcdefgh", "AAAAAR==", "é€€", "my-database"] {
        assert!(text.parse::<DatabaseRid>().is_err(), "{text}");
    }
}

#[test]
fn an_etag_is_a_quoted_guid_that_differs_for_every_write() {
    let etag = Etag::new(Sequence(0xD826), 0x65C0_F1B2);
    assert_eq!(etag.to_string(), "\"0000d826-0000-0000-0000-65c0f1b20000\"");
    assert!(etag.matches("\"0000d826-0000-0000-0000-65c0f1b20000\""));
    assert!(!etag.matches("0000d826-0000-0000-0000-65c0f1b20000"));
    for other in [0xD827, 0xD826 | 1 << 32, 0xD826 | 1 << 48, 0xD826 | 1 << 63] {
        assert_ne!(Etag::new(Sequence(other), 0x65C0_F1B2).to_string(), etag.to_string());
        assert_eq!(Etag::new(Sequence(other), 0x65C0_F1B2).to_string().len(), 38);
    }
}

#[test]
fn ids_follow_the_rules() {
    for id in ["a", "with space", "é🚀", "a?b", "a#b", "50%", "-", &"x".repeat(1023)] {
        assert!(check_item_id(id).is_ok(), "{id}");
    }
    for (id, message) in [("", "empty"), ("a/b", "'/'"), ("a\\b", "'\\'"), (&"é".repeat(512), "1024 bytes")]
    {
        assert!(check_item_id(id).unwrap_err().to_string().contains(message), "{id}");
    }
    for id in ["a", " a", "é🚀", "a.b-c_d", &"é".repeat(255)] {
        assert!(check_resource_id(id).is_ok(), "{id}");
    }
    for (id, message) in [
        ("", "empty"),
        ("a/b", "'/'"),
        ("a?b", "'?'"),
        ("a\\", "'\\'"),
        ("#", "'#'"),
        ("a ", "end with a space"),
        (&"x".repeat(256), "256 characters"),
    ] {
        assert!(check_resource_id(id).unwrap_err().to_string().contains(message), "{id}");
    }
}
