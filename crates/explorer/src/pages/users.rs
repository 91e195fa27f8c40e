//! Users: those of the MongoDB API, and those of NoSQL databases with their permissions.

use bson::{Document, DocumentRef, Value, ValueRef};
use document::UserRid;
use engine::{Engine, Precondition, Resource, ResourceParent};
use maud::{Markup, html};

use crate::confirm::Question;
use crate::fields::Fields;
use crate::format;
use crate::visit::Visit;
use crate::visit::answer::{Answer, Fault};
use crate::visit::layout::csrf;

/// Roles that the form offers.
const ROLES: [&str; 8] = [
    "read",
    "readWrite",
    "dbAdmin",
    "dbOwner",
    "userAdmin",
    "readAnyDatabase",
    "readWriteAnyDatabase",
    "root",
];

pub(crate) async fn show(visit: &Visit) -> Result<Answer, Fault> {
    let inner = html! {
        h1 { "Users" }
        (mongodb(visit).await)
        (nosql(visit).await?)
    };
    visit.show("Users", None, &inner).await
}

async fn mongodb(visit: &Visit) -> Markup {
    let all_users = Document::new().with("usersInfo", Document::new().with("forAllDBs", true));
    let users = visit.command("admin", all_users).await;
    html! {
        section.card {
            h2 { "MongoDB" }
            @match &users {
                Err(why) => p.faint { (why) },
                Ok(reply) => {
                    @let all = reply.document.get("users").and_then(ValueRef::as_array);
                    @let all: Vec<DocumentRef<'_>> = all.iter().flat_map(|all| all.iter()).filter_map(ValueRef::as_document).collect();
                    @if all.is_empty() { p.faint { "Only the account itself, whose password is the account key." } } @else {
                        table.list {
                            thead { tr { th { "User" } th { "Database" } th { "Roles" } th {} } }
                            tbody { @for user in all { (mongodb_row(visit, user)) } }
                        }
                    }
                    @if visit.may_write() { (mongodb_form(visit)) }
                }
            }
        }
    }
}

fn mongodb_row(visit: &Visit, user: DocumentRef<'_>) -> Markup {
    let text = |document: DocumentRef<'_>, name: &str| {
        document.get(name).and_then(ValueRef::as_str).unwrap_or_default().to_owned()
    };
    let roles = user.get("roles").and_then(ValueRef::as_array);
    let roles = roles.iter().flat_map(|roles| roles.iter()).filter_map(ValueRef::as_document);
    let roles: Vec<String> =
        roles.map(|role| format!("{}@{}", text(role, "role"), text(role, "db"))).collect();
    let (name, database) = (text(user, "user"), text(user, "db"));
    html! {
        tr data-row {
            td { (name) } td { (database) } td { (roles.join(", ")) }
            td {
                @if visit.may_write() {
                    form method="post" {
                        (csrf(visit))
                        input type="hidden" name="user" value=(name);
                        input type="hidden" name="database" value=(database);
                        button.danger name="do" value="drop-mongodb" { "Remove" }
                    }
                }
            }
        }
    }
}

fn mongodb_form(visit: &Visit) -> Markup {
    html! {
        form.inline method="post" {
            (csrf(visit))
            input type="text" name="user" required placeholder="user" aria-label="User" autocomplete="off";
            input type="password" name="password" required placeholder="password" aria-label="Password" autocomplete="new-password";
            input type="text" name="database" required placeholder="database" aria-label="Database";
            select name="role" aria-label="Role" { @for role in ROLES { option { (role) } } }
            button name="do" value="create-mongodb" { "Add user" }
        }
    }
}

/// A user of a NoSQL database, with its permissions.
struct NosqlUser {
    database: String,
    user: Resource,
    permissions: Vec<Resource>,
}

fn nosql_users(engine: &Engine) -> engine::Result<Vec<NosqlUser>> {
    let mut all = Vec::new();
    for database in engine.databases() {
        for user in engine.resources(ResourceParent::Database(database.rid))? {
            let owner = ResourceParent::User(UserRid { database: database.rid.0, user: user.number });
            all.push(NosqlUser {
                database: database.name.clone(),
                permissions: engine.resources(owner)?,
                user,
            });
        }
    }
    Ok(all)
}

async fn nosql(visit: &Visit) -> Result<Markup, Fault> {
    let users = visit.engine(nosql_users).await?;
    let databases = visit.backends.engine.databases();
    Ok(html! {
        section.card {
            h2 { "NoSQL" }
            p.faint { "Users of a database have permissions; a client gets a resource token for each and needs no key." }
            @if users.is_empty() { p.faint { "No users." } } @else {
                table.list {
                    thead { tr { th { "User" } th { "Database" } th { "Permissions" } th {} } }
                    tbody { @for user in &users { (nosql_row(visit, user)) } }
                }
            }
            @if visit.may_write() && !databases.is_empty() {
                form.inline method="post" {
                    (csrf(visit))
                    input type="text" name="user" required placeholder="user" aria-label="User" autocomplete="off";
                    select name="database" aria-label="Database" { @for database in &databases { option { (database.name) } } }
                    button name="do" value="create-nosql" { "Add user" }
                }
                @if !users.is_empty() { (permission_form(visit, &users)) }
            }
        }
    })
}

fn nosql_row(visit: &Visit, NosqlUser { database, user, permissions }: &NosqlUser) -> Markup {
    let text = |permission: &Resource, name: &str| {
        permission.definition.get(name).and_then(document::Value::as_str).unwrap_or_default().to_owned()
    };
    html! {
        tr data-row {
            td { (user.name()) } td { (database) }
            td {
                @for permission in permissions {
                    div { b { (permission.name()) } " " (text(permission, "permissionMode")) " on " code { (text(permission, "resource")) } }
                }
            }
            td {
                @if visit.may_write() {
                    form method="post" {
                        (csrf(visit))
                        input type="hidden" name="user" value=(user.name());
                        input type="hidden" name="database" value=(database);
                        button.danger name="do" value="drop-nosql" { "Remove" }
                    }
                }
            }
        }
    }
}

fn permission_form(visit: &Visit, users: &[NosqlUser]) -> Markup {
    html! {
        form.inline method="post" {
            (csrf(visit))
            select name="of" aria-label="User" {
                @for user in users { option value={ (user.database) "/" (user.user.name()) } { (user.database) " / " (user.user.name()) } }
            }
            input type="text" name="permission" required placeholder="permission" aria-label="Permission";
            select name="mode" aria-label="Mode" { option { "Read" } option { "All" } }
            input type="text" name="resource" required placeholder="dbs/shop/colls/orders" aria-label="Resource";
            button name="do" value="permit" { "Add permission" }
        }
    }
}

/// Returns a required field.
fn required(visit: &Visit, name: &str) -> Result<String, Fault> {
    let filled = visit.form.filled(name).map(str::to_owned);
    filled.ok_or_else(|| Fault::wrong(format!("'{name}' is missing.")))
}

/// Returns the roles and rights in a form, for the audit log.
pub(crate) fn settings(form: &Fields) -> document::Object {
    let names = ["role", "permission", "mode", "resource"];
    names.into_iter().filter_map(|name| Some((name, form.filled(name)?))).collect()
}

pub(crate) async fn change(visit: &Visit) -> Result<Answer, Fault> {
    let field = |name| required(visit, name);
    match visit.form.text("do") {
        Some("create-mongodb") => {
            let role =
                Document::new().with("role", field("role")?.as_str()).with("db", field("database")?.as_str());
            let command = Document::new()
                .with("createUser", field("user")?.as_str())
                .with("pwd", visit.form.text("password").unwrap_or_default())
                .with("roles", Value::Array(vec![role.into()]));
            visit.command(&field("database")?, command).await.map_err(Fault::wrong)?;
        }
        Some("drop-mongodb") => {
            if let Some(page) = ask_mongodb(visit, &field("database")?, &field("user")?).await? {
                return Ok(page);
            }
            let command = Document::new().with("dropUser", field("user")?.as_str());
            visit.command(&field("database")?, command).await.map_err(Fault::wrong)?;
        }
        Some("create-nosql") => {
            let (database, user) = (field("database")?, field("user")?);
            let mut definition = document::Object::new();
            definition.insert("id", user);
            visit
                .engine(move |engine| {
                    engine.create_resource(
                        ResourceParent::Database(engine.database(&database)?.rid),
                        definition,
                    )
                })
                .await?;
        }
        Some("drop-nosql") => {
            let (database, user) = (field("database")?, field("user")?);
            if let Some(page) = ask_nosql(visit, &database, &user).await? {
                return Ok(page);
            }
            visit
                .engine(move |engine| {
                    let owner = ResourceParent::Database(engine.database(&database)?.rid);
                    engine.delete_resource(owner, &user, &Precondition::None)
                })
                .await?;
        }
        Some("permit") => permit(visit).await?,
        _ => return Err(Fault::wrong("Nothing was asked for.")),
    }
    Ok(Answer::See("/_explorer/users?said=user".to_owned()))
}

/// Asks whether a user of the MongoDB API is to be removed; `None` if the visitor has confirmed it.
async fn ask_mongodb(visit: &Visit, database: &str, user: &str) -> Result<Option<Answer>, Fault> {
    let named = Document::new().with("user", user).with("db", database);
    let found = visit.command(database, Document::new().with("usersInfo", named)).await;
    let found = found.map_err(Fault::wrong)?;
    let users = found.document.get("users").and_then(ValueRef::as_array);
    let Some(known) = users.iter().flat_map(|users| users.iter()).find_map(ValueRef::as_document) else {
        return Err(Fault::not_found("The user"));
    };
    let roles = known.get("roles").and_then(ValueRef::as_array).map_or(0, |roles| roles.iter().count());
    let effect = format!(
        "The user and its {} are removed. Clients that authenticate as this user are refused from then on.",
        counted(roles as u64, "role")
    );
    ask(visit, (database, user), effect, 1).await
}

/// Asks for confirmation for a user of a NoSQL database.
async fn ask_nosql(visit: &Visit, database: &str, user: &str) -> Result<Option<Answer>, Fault> {
    let (of, name) = (database.to_owned(), user.to_owned());
    let permissions = visit
        .engine(move |engine| {
            let database = engine.database(&of)?.rid;
            let user = engine.resource(ResourceParent::Database(database), &name)?;
            let owner = ResourceParent::User(UserRid { database: database.0, user: user.number });
            Ok(engine.resources(owner)?.len() as u64)
        })
        .await?;
    let effect = format!(
        "The user and its {} are removed. Resource tokens made from them are refused from then on.",
        counted(permissions, "permission")
    );
    ask(visit, (database, user), effect, 1 + permissions).await
}

async fn ask(
    visit: &Visit,
    (database, user): (&str, &str),
    effect: String,
    number: u64,
) -> Result<Option<Answer>, Fault> {
    let question = Question {
        title: format!("Remove the user '{user}' of '{database}'"),
        effects: vec![effect],
        number: Some(number),
        button: "Remove the user",
        back: "/_explorer/users".to_owned(),
    };
    question.ask(visit, None).await
}

/// `1 role`, `3 roles`.
fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", format::count(number), if number == 1 { "" } else { "s" })
}

async fn permit(visit: &Visit) -> Result<(), Fault> {
    let field = |name| required(visit, name);
    let of = field("of")?;
    let (database, user) = of
        .split_once('/')
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .ok_or_else(|| Fault::wrong("No such user."))?;
    let mut definition = document::Object::new();
    definition.insert("id", field("permission")?);
    definition.insert("permissionMode", field("mode")?);
    definition.insert("resource", field("resource")?);
    visit
        .engine(move |engine| {
            let database = engine.database(&database)?;
            let user = engine.resource(ResourceParent::Database(database.rid), &user)?;
            let owner = ResourceParent::User(UserRid { database: database.rid.0, user: user.number });
            engine.create_resource(owner, definition)
        })
        .await
        .map(drop)
}
