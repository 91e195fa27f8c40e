//! The language as a whole: golden scripts by area, and properties over random documents.

#![expect(clippy::unwrap_used, reason = "tests")]

mod corpus;
mod explain_filter;
mod expression;
mod filter_properties;
mod patterns;
mod pipeline;
mod plan;
mod plan_special;
mod script;
mod spill;
mod update;
mod verbs;

#[test]
fn aggregate_scripts() {
    script::run("aggregate");
}

#[test]
fn expr_scripts() {
    script::run("expr");
}

#[test]
fn find_scripts() {
    script::run("find");
}

#[test]
fn project_scripts() {
    script::run("project");
}

#[test]
fn sort_scripts() {
    script::run("sort");
}

#[test]
fn update_scripts() {
    script::run("update");
}

#[test]
fn upsert_scripts() {
    script::run("upsert");
}
