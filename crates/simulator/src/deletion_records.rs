//! Deletion records as the engine keeps them, of containers and collections alike.

use engine::{Engine, Owner, Verifier};

/// Returns the entries about purged items, oldest first.
pub(crate) fn purged_lines(engine: &Engine, owner: &Owner) -> Result<Vec<String>, String> {
    let logs = engine.deletion_logs_of(owner).map_err(|error| error.to_string())?;
    let mut purged = Vec::new();
    for log in logs {
        let mut after = 0;
        while after < log.count {
            let page = engine.deletion_page(log.log, after).map_err(|error| error.to_string())?;
            let text = std::str::from_utf8(&page.lines).map_err(|error| error.to_string())?;
            let lines = text.lines().filter(|line| line.contains(r#""event":"purged""#));
            purged.extend(lines.map(str::to_owned));
            after = page.last;
        }
    }
    Ok(purged)
}

/// Verifies every deletion record from its beginning to its end, including those of deleted owners.
pub(crate) fn verify(engine: &Engine) -> Result<(), String> {
    for log in engine.deletion_logs().map_err(|error| error.to_string())? {
        let mut verifier = Verifier::default();
        while verifier.count() < log.count {
            let page = engine.deletion_page(log.log, verifier.count()).map_err(|error| error.to_string())?;
            for line in page.lines.split_inclusive(|byte| *byte == b'\n') {
                verifier.line(line).map_err(|error| format!("a record: {error}"))?;
            }
        }
        let whole = verifier.finish(Some(&log.head), Some(log.count));
        whole.map_err(|error| format!("a record: {error}"))?;
    }
    Ok(())
}
