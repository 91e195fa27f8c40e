//! The rights that commands need where they depend on the request: one function for each, named in the table of commands.
//!
//! Errors in a command are left for the command itself to report, as long as it then does nothing. A function here must
//! read what the command reads: the first field of a name, and the pipeline as it is parsed to run.

#![allow(clippy::unnecessary_wraps, reason = "all commands have one shape")]

use std::collections::BTreeSet;

use bson::{DocumentRef, RawDocument, ValueRef};
use mql::pipeline::{Description, Pipeline, Writes};

use crate::access::catalog;
use crate::commands;
use crate::protocol::error::Result;
use crate::protocol::fields::{truth, whole};
use crate::rights::{Action, Privilege, Resource, Rights, Role};
use crate::service::call::Call;
use crate::service::command::Access;
use crate::statements::{self, pipelines};

/// Returns what a command needs.
pub(crate) fn of(call: &Call) -> Result<Vec<Privilege>> {
    match call.command.access {
        Access::Public | Access::Authenticated => Ok(Vec::new()),
        Access::Database(action) => Ok(vec![here(call, action)]),
        Access::Cluster(action) => Ok(vec![Privilege::cluster(action)]),
        Access::Computed(needs) => needs(call),
    }
}

fn here(call: &Call, action: Action) -> Privilege {
    Privilege::on(&call.database, action)
}

fn is_set(document: DocumentRef<'_>, name: &str) -> bool {
    document.get(name).and_then(truth).unwrap_or(false)
}

/// Returns the right to bypass validators, if the command does so.
fn bypass(call: &Call, database: &str) -> Option<Privilege> {
    let wanted = is_set(call.body.view(), "bypassDocumentValidation");
    wanted.then(|| Privilege::on(database, Action::BypassDocumentValidation))
}

pub(crate) fn insert(call: &Call) -> Result<Vec<Privilege>> {
    Ok([here(call, Action::Insert)].into_iter().chain(bypass(call, &call.database)).collect())
}

pub(crate) fn update(call: &Call) -> Result<Vec<Privilege>> {
    let upserts = call.each_document("updates").any(|update| is_set(update, "upsert"));
    let mut needs = vec![here(call, Action::Update)];
    needs.extend(upserts.then(|| here(call, Action::Insert)));
    needs.extend(bypass(call, &call.database));
    Ok(needs)
}

pub(crate) fn find_and_modify(call: &Call) -> Result<Vec<Privilege>> {
    let body = call.body.view();
    let change = if is_set(body, "remove") { Action::Remove } else { Action::Update };
    let mut needs = vec![here(call, Action::Find), here(call, change)];
    needs.extend(is_set(body, "upsert").then(|| here(call, Action::Insert)));
    needs.extend(bypass(call, &call.database));
    Ok(needs)
}

pub(crate) fn bulk_write(call: &Call) -> Result<Vec<Privilege>> {
    let databases =
        call.each_document("nsInfo").map(|target| database_of(target.get("ns"))).collect::<Vec<_>>();
    let mut done = BTreeSet::new();
    for operation in call.each_document("ops") {
        let Some((kind, target)) = operation.iter().next() else { continue };
        let Some(target) = whole(target).and_then(|target| usize::try_from(target).ok()) else { continue };
        match kind {
            "insert" => drop(done.insert((target, Action::Insert))),
            "delete" => drop(done.insert((target, Action::Remove))),
            "update" => {
                done.insert((target, Action::Update));
                if is_set(operation, "upsert") {
                    done.insert((target, Action::Insert));
                }
            }
            _ => {}
        }
    }
    let mut needs = Vec::new();
    for (target, action) in done {
        if let Some(Some(database)) = databases.get(target) {
            needs.push(Privilege::on(database, action));
            needs.extend(bypass(call, database));
        }
    }
    Ok(needs)
}

/// Returns the database of a full name of a collection.
fn database_of(namespace: Option<ValueRef<'_>>) -> Option<&str> {
    namespace.and_then(ValueRef::as_str)?.split_once('.').map(|(database, _)| database)
}

pub(crate) fn aggregate(call: &Call) -> Result<Vec<Privilege>> {
    let Some(stages) = call.documents("pipeline")? else { return Ok(vec![here(call, Action::Find)]) };
    let collection = pipelines::collection(call)?;
    let language = statements::settings(call, call.fields())?;
    let settings = pipelines::settings(call, collection, &language);
    let stages: Vec<_> = stages.iter().map(RawDocument::view).collect();
    let pipeline = Pipeline::parse(&stages, &settings)?;
    let mut needs = Vec::new();
    if let Some(stream) = pipeline.change_stream() {
        let on = if stream.all_changes_for_cluster {
            Resource::EveryDatabase
        } else {
            Resource::Database(call.database.clone())
        };
        needs.push(Privilege { action: Action::ChangeStream, on: on.clone() });
        needs.push(Privilege { action: Action::Find, on });
    } else if collection.is_some() && pipeline.reads_collection() {
        needs.push(here(call, Action::Find));
    }
    needs.extend(pipeline.collections().into_iter().map(|name| Privilege::on(&name.database, Action::Find)));
    for (name, what) in pipeline.descriptions() {
        needs.extend(described(&name.database, &what));
    }
    needs.extend(pipeline.writes().into_iter().flat_map(|writes| written(call, writes)));
    // Computed documents take memory and time even if they come from no collection: only clients that may read something
    // may ask for them.
    let makes_documents = stages.iter().any(|stage| names(ValueRef::Document(*stage), "$documents"));
    if makes_documents && !reads_anything(&call.rights) {
        needs.push(here(call, Action::Find));
    }
    Ok(needs)
}

/// Whether a client may read some database.
fn reads_anything(rights: &Rights) -> bool {
    match rights {
        Rights::Everything => true,
        Rights::Roles(roles) => {
            roles.iter().any(|role| rights.allow(&Privilege::on(&role.database, Action::Find)))
        }
        Rights::Nothing => false,
    }
}

/// Whether a value contains that name at any depth. A literal may have it too: taking it for a stage asks for a right that
/// the other stages need as a rule.
fn names(value: ValueRef<'_>, wanted: &str) -> bool {
    match value {
        ValueRef::Document(fields) => {
            fields.iter().any(|(name, value)| name == wanted || names(value, wanted))
        }
        ValueRef::Array(items) => items.iter().any(|item| names(item, wanted)),
        _ => false,
    }
}

fn described(database: &str, what: &Description) -> Option<Privilege> {
    match what {
        Description::Collection(_) => Some(Privilege::on(database, Action::CollStats)),
        Description::Indexes => Some(Privilege::on(database, Action::IndexStats)),
        // Every client may see its own.
        Description::Operations(options) => {
            is_set(options.view(), "allUsers").then(|| Privilege::cluster(Action::Inprog))
        }
        Description::Sessions => None,
    }
}

fn written(call: &Call, writes: Writes<'_>) -> Vec<Privilege> {
    let (database, actions) = match writes {
        Writes::Out(target) => (&target.database, vec![Action::Insert, Action::Remove]),
        Writes::Merge(merge) => {
            let inserts = merge.inserts().then_some(Action::Insert);
            let updates = merge.updates().then_some(Action::Update);
            (&merge.target().database, inserts.into_iter().chain(updates).collect())
        }
    };
    let needs = actions.into_iter().map(|action| Privilege::on(database, action));
    needs.chain(bypass(call, database)).collect()
}

/// Returns the privileges that making a view needs: a client that may read the view reads the collections behind it, so the
/// client that makes it must be allowed to read those of every other database.
fn behind_view(call: &Call) -> Result<Vec<Privilege>> {
    let fields = call.fields();
    let Some(on) = fields.text("viewOn")? else { return Ok(Vec::new()) };
    let stages = call.documents("pipeline")?.unwrap_or_default();
    let pipeline = catalog::parse_view(&call.database, on, &stages)?;
    let others = pipeline.collections().into_iter().filter(|name| name.database != call.database);
    Ok(others.map(|name| Privilege::on(&name.database, Action::Find)).collect())
}

pub(crate) fn create(call: &Call) -> Result<Vec<Privilege>> {
    Ok([here(call, Action::CreateCollection)].into_iter().chain(behind_view(call)?).collect())
}

pub(crate) fn change_view(call: &Call) -> Result<Vec<Privilege>> {
    Ok([here(call, Action::CollMod)].into_iter().chain(behind_view(call)?).collect())
}

pub(crate) fn custom_action(call: &Call) -> Result<Vec<Privilege>> {
    let actions: &[Action] = match call.argument().as_str() {
        Some("CreateDatabase") => &[Action::CreateCollection],
        Some("CreateCollection") => &[Action::CreateCollection, Action::CreateIndex],
        Some("UpdateDatabase" | "UpdateCollection") => &[Action::CollMod],
        Some("GetDatabase") => &[Action::DbStats],
        Some("GetCollection") => &[Action::CollStats],
        // The command refuses it by name.
        _ => &[],
    };
    Ok(actions.iter().map(|action| here(call, *action)).collect())
}

pub(crate) fn rename_collection(call: &Call) -> Result<Vec<Privilege>> {
    let body = call.body.view();
    let (from, to) = (database_of(Some(call.argument())), database_of(body.get("to")));
    let (Some(from), Some(to)) = (from, to) else { return Ok(Vec::new()) };
    let drops = match body.get("dropTarget") {
        Some(ValueRef::Binary(_)) => true,
        other => other.and_then(truth).unwrap_or(false),
    };
    let mut needs = if from == to {
        vec![Privilege::on(from, Action::RenameCollectionSameDb)]
    } else {
        vec![
            Privilege::on(from, Action::Find),
            Privilege::on(from, Action::DropCollection),
            Privilege::on(to, Action::Insert),
            Privilege::on(to, Action::CreateIndex),
        ]
    };
    needs.extend(drops.then(|| Privilege::on(to, Action::DropCollection)));
    Ok(needs)
}

/// Returns what the explained command needs; a command that cannot be explained is refused by name.
pub(crate) fn explain(call: &Call) -> Result<Vec<Privilege>> {
    let Some(inner) = call.argument().as_document() else { return Ok(Vec::new()) };
    let name = inner.iter().next().map_or("", |(name, _)| name);
    match commands::find(name) {
        Some(command) if !std::ptr::eq(command, call.command) => {
            of(&call.about(command, RawDocument::from_view(inner)))
        }
        _ => Ok(Vec::new()),
    }
}

/// Returns what opening the cursor needed. The command itself checks the owner.
pub(crate) fn get_more(call: &Call) -> Result<Vec<Privilege>> {
    let id = whole(call.argument());
    Ok(id.map(|id| call.service.cursors.needs(id)).unwrap_or_default())
}

/// Returns what stopping a command needs: nothing if it is the client's own.
pub(crate) fn kill_op(call: &Call) -> Result<Vec<Privilege>> {
    let number = call.body.get("op").and_then(whole);
    let user = call.connection.user_digest();
    let running = number.and_then(|number| call.service.operations.get(number));
    let own = running.is_some_and(|operation| operation.connection.user_digest() == user);
    Ok(if own { Vec::new() } else { vec![Privilege::cluster(Action::KillOp)] })
}

pub(crate) fn current_op(call: &Call) -> Result<Vec<Privilege>> {
    let own = is_set(call.body.view(), "$ownOps");
    Ok(if own { Vec::new() } else { vec![Privilege::cluster(Action::Inprog)] })
}

/// Returns the privileges to see all databases if the client asks for all of them; without the right it sees its own.
pub(crate) fn list_databases(call: &Call) -> Result<Vec<Privilege>> {
    let wants_all = call.body.get("authorizedDatabases").and_then(truth) == Some(false);
    Ok(wants_all.then(|| Privilege::cluster(Action::ListDatabases)).into_iter().collect())
}

/// Returns the privileges: a client that may do anything in the database may list the names of the collections that it may
/// use.
pub(crate) fn list_collections(call: &Call) -> Result<Vec<Privilege>> {
    let body = call.body.view();
    let modest = is_set(body, "nameOnly") && is_set(body, "authorizedCollections");
    let enough = modest && call.rights.reach(&call.database);
    Ok(if enough { Vec::new() } else { vec![here(call, Action::ListCollections)] })
}

/// Returns that right on the databases of the roles that a command names; the command refuses roles that do not exist.
fn with_roles(call: &Call, action: Action) -> Vec<Privilege> {
    let roles = call.body.get("roles").and_then(ValueRef::as_array);
    let roles = roles.into_iter().flat_map(bson::ArrayRef::iter);
    let roles = roles.filter_map(|role| Role::parse(role, &call.database).ok());
    roles.map(|role| Privilege::on(&role.database, action)).collect()
}

pub(crate) fn create_user(call: &Call) -> Result<Vec<Privilege>> {
    let granted = with_roles(call, Action::GrantRole);
    Ok([here(call, Action::CreateUser)].into_iter().chain(granted).collect())
}

pub(crate) fn grant_roles(call: &Call) -> Result<Vec<Privilege>> {
    Ok(at_least(call, with_roles(call, Action::GrantRole), Action::GrantRole))
}

pub(crate) fn revoke_roles(call: &Call) -> Result<Vec<Privilege>> {
    Ok(at_least(call, with_roles(call, Action::RevokeRole), Action::RevokeRole))
}

/// Adds the right on the command's database if the command names no role, so that only clients that could run it see that
/// error.
fn at_least(call: &Call, needs: Vec<Privilege>, action: Action) -> Vec<Privilege> {
    if needs.is_empty() { vec![here(call, action)] } else { needs }
}

/// As with MongoDB, no built-in role lets users change their own password alone: one that may change it may change any of the database.
pub(crate) fn update_user(call: &Call) -> Result<Vec<Privilege>> {
    let given = |name: &str| call.body.get(name).is_some();
    let mut needs = Vec::new();
    if given("roles") {
        needs.push(Privilege { action: Action::RevokeRole, on: Resource::EveryDatabase });
        needs.extend(with_roles(call, Action::GrantRole));
    }
    if given("customData") {
        needs.push(here(call, Action::ChangeCustomData));
    }
    if given("pwd") || given("mechanisms") || needs.is_empty() {
        needs.push(here(call, Action::ChangePassword));
    }
    Ok(needs)
}

/// Returns nothing for users who look at themselves.
pub(crate) fn users_info(call: &Call) -> Result<Vec<Privilege>> {
    let named = match call.argument() {
        ValueRef::Document(which) if which.get("forAllDBs").is_some() => {
            return Ok(vec![Privilege::cluster(Action::ViewUser)]);
        }
        ValueRef::Array(items) => items.iter().collect(),
        one @ (ValueRef::String(_) | ValueRef::Document(_)) => vec![one],
        _ => return Ok(vec![here(call, Action::ViewUser)]),
    };
    let identity = call.connection.client.lock().identity.clone();
    let part = |item: ValueRef<'_>, name| {
        item.as_document().and_then(|it| it.get(name)).and_then(ValueRef::as_str).map(str::to_owned)
    };
    let others = named.into_iter().filter_map(|item| {
        let name = item.as_str().map(str::to_owned).or_else(|| part(item, "user"))?;
        let database = part(item, "db").unwrap_or_else(|| call.database.clone());
        let own = identity.as_ref().is_some_and(|own| own.user == name && own.database == database);
        (!own).then(|| Privilege::on(&database, Action::ViewUser))
    });
    Ok(others.collect())
}

/// Returns nothing for users who look at roles that they have.
pub(crate) fn roles_info(call: &Call) -> Result<Vec<Privilege>> {
    let named = match call.argument() {
        ValueRef::Array(items) => items.iter().collect(),
        one @ (ValueRef::String(_) | ValueRef::Document(_)) => vec![one],
        _ => return Ok(vec![here(call, Action::ViewRole)]),
    };
    let own = match &call.rights {
        Rights::Roles(roles) => &roles[..],
        Rights::Everything | Rights::Nothing => &[],
    };
    let others = named.into_iter().filter_map(|item| Role::parse(item, &call.database).ok());
    let others = others.filter(|role| !own.contains(role));
    Ok(others.map(|role| Privilege::on(&role.database, Action::ViewRole)).collect())
}
