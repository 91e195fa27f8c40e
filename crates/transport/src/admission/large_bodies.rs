//! Tests of bodies that need more memory than is free, in paused time: they wait, and hold others up for a moment only.

use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;

const MOMENT: Duration = Duration::from_millis(500);
const SOON: Duration = Duration::from_millis(1);

fn tenant(name: &str) -> Tenant {
    Tenant::new(Api::Mongo, name)
}

/// Admission control with memory for sixteen pieces of bodies, of which one tenant takes all that it gets and keeps them.
async fn beside_a_greedy_tenant(admission: &Admission) -> Vec<Permit<'_>> {
    let mut held = Vec::new();
    while let Ok(Ok(permit)) = timeout(SOON, admission.receive(tenant("greedy"), PIECE_BYTES)).await {
        held.push(permit);
    }
    assert_eq!(held.len(), 12, "three quarters");
    held
}

fn admission() -> Admission {
    Admission::new(Bounds { held_bytes: 32 * PIECE_BYTES, ..Bounds::default() })
}

/// Returns whether a body of this tenant is received within a moment.
async fn is_received(admission: &Admission, name: &str) -> bool {
    timeout(MOMENT, admission.receive(tenant(name), PIECE_BYTES)).await.is_ok_and(|received| received.is_ok())
}

/// Otherwise a tenant that keeps what it has, and one that wants more than is left, keep all others from sending.
#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_fit_holds_others_up_for_a_moment() {
    let admission = admission();
    let held = beside_a_greedy_tenant(&admission).await;
    let mut large = Box::pin(admission.receive_unbounded(tenant("large"), 8 * PIECE_BYTES));
    assert!(timeout(SOON, &mut large).await.is_err());
    let (received, large_is_received) =
        tokio::join!(is_received(&admission, "honest"), timeout(2 * MOMENT, &mut large));
    assert!(received && large_is_received.is_err());
    for name in ["honest", "large"] {
        let own = timeout(SOON, admission.receive(tenant(name), PIECE_BYTES)).await;
        assert!(own.is_ok_and(|own| own.is_ok()), "{name}: it is held up no more");
    }
    drop(held);
    assert!(timeout(SOON, large).await.is_ok_and(|large| large.is_some()), "it is received when it fits");
    assert_eq!(admission.held_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_tenant_that_sends_large_bodies_again_and_again_holds_others_up_once() {
    let admission = Arc::new(admission());
    let _held = beside_a_greedy_tenant(&admission).await;
    let begin = || {
        let admission = Arc::clone(&admission);
        tokio::spawn(
            async move { admission.receive_unbounded(tenant("large"), 8 * PIECE_BYTES).await.is_some() },
        )
    };
    let mut attack = Vec::new();
    for step in 0..20 {
        attack.push(begin());
        let received = timeout(MOMENT / 2, admission.receive(tenant("honest"), PIECE_BYTES)).await;
        assert!(step < 2 || received.is_ok_and(|received| received.is_ok()), "step {step}");
        tokio::time::advance(MOMENT / 4).await;
    }
    attack.iter().for_each(JoinHandle::abort);
}
