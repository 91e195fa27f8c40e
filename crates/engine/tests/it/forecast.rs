//! Forecast and dry run against what then happens (T30).

use engine::{DefaultTtl, Interval, Owner, Tally};

use crate::model_test::each_seed;
use crate::ttl_modes::{read, set_lifecycle};
use crate::world::World;

fn expired(world: &World, owner: &Owner) -> Tally {
    world.engine.usage_of(owner).expect("figures").expired
}

fn less(more: Tally, less: Tally) -> Tally {
    Tally { items: more.items - less.items, bytes: more.bytes - less.bytes }
}

/// Random items over random pasts, some of them expired; in every other world reads restart countdowns (T33).
fn populate(world: &World, random: &mut fastrand::Rng, span: u64) {
    let slides = random.bool();
    set_lifecycle(world, |settings| settings.sliding = slides);
    for id in 0..random.usize(1..60) {
        let ttl = match random.u8(..4) {
            0 => String::new(),
            1 => r#","ttl":-1"#.to_owned(),
            _ => format!(r#","ttl":{}"#, random.u64(1..span)),
        };
        let padding = "x".repeat(random.usize(..50));
        world.create("a", &format!(r#""id":"{id}","padding":"{padding}"{ttl}"#)).expect("new");
        world.pass(random.u64(..span / 30 + 2));
        // Reads do not restart the countdown of an expired item.
        read(world, &random.usize(..=id).to_string()).ok();
    }
}

#[test]
fn t30_a_forecast_is_what_happens() {
    each_seed(60, |seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        let world = World::new();
        let interval = [Interval::Minute, Interval::Hour, Interval::Day][random.usize(..3)];
        let (count, length) = (random.usize(1..8), interval.seconds());
        world.container(&format!(r#","defaultTtl":{}"#, random.u64(1..length * 6)));
        populate(&world, &mut random, length * 6);
        let owner = world.owner();
        let living = world.engine.usage_of(&owner).expect("figures").living;
        let forecast = world.engine.forecast(&owner, interval, count).expect("a forecast");
        assert!(forecast.exact);
        assert_eq!(forecast.overdue, expired(&world, &owner));
        let mut before = forecast.overdue;
        for (at, expected) in forecast.intervals.iter().enumerate() {
            world.pass(length);
            let after = expired(&world, &owner);
            assert_eq!(less(after, before), *expected, "interval {at}");
            before = after;
        }
        world.pass(1 << 32);
        assert_eq!(less(expired(&world, &owner), before), forecast.later);
        let rest = world.engine.usage_of(&owner).expect("figures").living;
        assert_eq!(rest, forecast.never, "of {living:?}");
    });
}

#[test]
fn t30_a_dry_run_is_what_the_change_then_does() {
    each_seed(100, |seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        let world = World::new();
        world.container("");
        let any = |random: &mut fastrand::Rng| match random.u8(..5) {
            0 => None,
            1 => Some(-1),
            _ => Some(random.i64(1..400)),
        };
        world.set_default(any(&mut random));
        populate(&world, &mut random, 300);
        for _ in 0..4 {
            let next = any(&mut random);
            let default_ttl = next.map_or(DefaultTtl::Off, |seconds| {
                u32::try_from(seconds).map_or(DefaultTtl::Never, DefaultTtl::Seconds)
            });
            let before = world.engine.usage(&world.current()).expect("figures");
            let dry_run = world.engine.dry_run(&world.owner(), default_ttl).expect("figures");
            let told = world.engine.forecast_if(&world.owner(), default_ttl, Interval::Minute, 5);
            world.set_default(next);
            let then = world.engine.forecast(&world.owner(), Interval::Minute, 5).expect("a forecast");
            assert_eq!(told.expect("a forecast"), then);
            let after = world.engine.usage(&world.current()).expect("figures");
            assert!(dry_run.expiring.exact);
            assert_eq!(dry_run.living, before.living);
            assert_eq!(dry_run.expiring.tally, less(after.expired, before.expired));
            assert_eq!(dry_run.remaining(), after.living);
            world.pass(random.u64(..50));
            if random.bool() {
                world.engine.purge_step(random.usize(1..20)).expect("a step");
            }
        }
    });
}
