//! The outcomes of requests, in terms that fit both protocols: grouped by what the caller or the operator can do.

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The request succeeded.
    Ok,
    /// The request is wrong: it would fail again.
    Invalid,
    /// The client is not authenticated.
    Unauthorized,
    /// The client is authenticated, but lacks the right; or a hold forbids the request.
    Forbidden,
    /// The target does not exist.
    NotFound,
    /// The request conflicts with an existing name or a concurrent write.
    Conflict,
    /// A precondition of the caller does not hold.
    PreconditionFailed,
    /// The request or its answer is too large.
    TooLarge,
    /// The request exceeds the provisioned throughput.
    Throttled,
    /// The request took too long.
    Timeout,
    /// The client disconnected before the answer.
    Abandoned,
    /// The server is temporarily unable to serve the request.
    Unavailable,
    /// A defect of the server.
    Failed,
}

impl Outcome {
    /// All outcomes, in the order of their numbers.
    pub const ALL: [Outcome; 13] = [
        Outcome::Ok,
        Outcome::Invalid,
        Outcome::Unauthorized,
        Outcome::Forbidden,
        Outcome::NotFound,
        Outcome::Conflict,
        Outcome::PreconditionFailed,
        Outcome::TooLarge,
        Outcome::Throttled,
        Outcome::Timeout,
        Outcome::Abandoned,
        Outcome::Unavailable,
        Outcome::Failed,
    ];

    /// Returns the name used by metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Ok => "ok",
            Outcome::Invalid => "invalid",
            Outcome::Unauthorized => "unauthorized",
            Outcome::Forbidden => "forbidden",
            Outcome::NotFound => "not_found",
            Outcome::Conflict => "conflict",
            Outcome::PreconditionFailed => "precondition_failed",
            Outcome::TooLarge => "too_large",
            Outcome::Throttled => "throttled",
            Outcome::Timeout => "timeout",
            Outcome::Abandoned => "abandoned",
            Outcome::Unavailable => "unavailable",
            Outcome::Failed => "failed",
        }
    }

    /// Returns the outcome for an HTTP status code.
    pub fn of_status(status: u16) -> Outcome {
        match status {
            ..400 => Outcome::Ok,
            401 => Outcome::Unauthorized,
            403 => Outcome::Forbidden,
            404 | 410 => Outcome::NotFound,
            408 => Outcome::Timeout,
            409 | 449 => Outcome::Conflict,
            412 => Outcome::PreconditionFailed,
            413 => Outcome::TooLarge,
            429 => Outcome::Throttled,
            400..500 => Outcome::Invalid,
            503 => Outcome::Unavailable,
            500.. => Outcome::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_has_its_number_and_its_name() {
        for (number, outcome) in Outcome::ALL.into_iter().enumerate() {
            assert_eq!(outcome as usize, number);
            let same = Outcome::ALL.iter().filter(|other| other.name() == outcome.name()).count();
            assert_eq!(same, 1, "{outcome:?}");
        }
    }

    #[test]
    fn status_codes_have_outcomes() {
        for (status, outcome) in [
            (201, Outcome::Ok),
            (304, Outcome::Ok),
            (400, Outcome::Invalid),
            (405, Outcome::Invalid),
            (410, Outcome::NotFound),
            (429, Outcome::Throttled),
            (500, Outcome::Failed),
            (503, Outcome::Unavailable),
        ] {
            assert_eq!(Outcome::of_status(status), outcome, "{status}");
        }
    }
}
