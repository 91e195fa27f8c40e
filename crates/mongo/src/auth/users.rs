//! Users as they are stored: documents of `admin.system.users`, one per user, found by `database.user`.

use std::sync::Arc;

use bson::{Binary, BinaryRef, Document, RawDocument, Value, ValueRef};
use engine::collection::{Decision, LivingDocument, Target, Verdict};
use engine::{Collection, CollectionDefinition, Engine};
use mql::Code;
use storage::Direction;

use super::Principal;
use super::account::AccountKeys;
use super::credential::{Credential, Credentials, Mechanism};
use crate::protocol::error::{Error, Result};
use crate::protocol::random;
use crate::protocol::reply::list;
use crate::protocol::settings::Account;
use crate::rights::Role;

const DATABASE: &str = "admin";
const COLLECTION: &str = "system.users";
/// The most users that are listed at once.
const USERS_MAX: usize = 100_000;
/// How many are read from the engine at a time.
const PAGE: usize = 1000;

/// A user that was made by `createUser`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct User {
    pub(crate) id: [u8; 16],
    pub(crate) name: String,
    pub(crate) database: String,
    pub(crate) credentials: Credentials,
    pub(crate) roles: Vec<Role>,
    pub(crate) custom_data: Option<Document>,
}

impl User {
    /// Returns the document's `_id`.
    fn key(name: &str, database: &str) -> String {
        format!("{database}.{name}")
    }

    /// Returns the stored document, which `usersInfo` shows without its credentials.
    pub(crate) fn to_document(&self) -> Document {
        let mut document = Document::new()
            .with("_id", User::key(&self.name, &self.database))
            .with("userId", Binary { subtype: 4, bytes: self.id.to_vec() })
            .with("user", self.name.as_str())
            .with("db", self.database.as_str())
            .with("credentials", self.credentials.to_document())
            .with("roles", list(self.roles.iter().map(Role::to_document)));
        if let Some(data) = &self.custom_data {
            document.push("customData", data.clone());
        }
        document
    }

    fn parse(document: &RawDocument) -> Option<User> {
        let text = |name| document.get(name).and_then(ValueRef::as_str).map(str::to_owned);
        let Some(ValueRef::Binary(BinaryRef { bytes, .. })) = document.get("userId") else { return None };
        let role = |value: ValueRef<'_>| {
            let role = value.as_document()?;
            let text = |name| Some(role.get(name)?.as_str()?.to_owned());
            Some(Role { name: text("role")?, database: text("db")? })
        };
        Some(User {
            id: bytes.try_into().ok()?,
            name: text("user")?,
            database: text("db")?,
            credentials: Credentials::parse(document.get("credentials")?.as_document()?),
            roles: document.get("roles")?.as_array()?.iter().filter_map(role).collect(),
            custom_data: document
                .get("customData")
                .and_then(ValueRef::as_document)
                .map(bson::DocumentRef::to_document),
        })
    }
}

/// Access to all users.
pub(crate) struct Users<'a> {
    pub(crate) engine: &'a Arc<Engine>,
    pub(crate) account: &'a Account,
    pub(crate) keys: &'a AccountKeys,
}

impl Users<'_> {
    /// Whether this is the name of the account, which is a user of every database.
    pub(crate) fn is_account(&self, name: &str) -> bool {
        self.account.user == name
    }

    /// Returns what a proof for that user is checked against, each with its principal; nothing if there is no such user.
    pub(crate) fn credentials(
        &self,
        name: &str,
        database: &str,
        mechanism: Mechanism,
    ) -> Result<Vec<(Credential, Principal)>> {
        if self.is_account(name) {
            return Ok(self.keys.credentials(self.account, mechanism));
        }
        let user = self.find(name, database)?;
        let known =
            user.and_then(|user| Some((user.credentials.get(mechanism)?.clone(), Principal::User(user.id))));
        Ok(known.into_iter().collect())
    }

    /// Whether a key that was good when an authentication began still is.
    pub(crate) fn is_good(&self, principal: &Principal) -> bool {
        match principal {
            Principal::User(_) => true,
            Principal::Account(holder) => self.account.keys.authenticate(holder.key.reveal()).is_some(),
        }
    }

    /// How a user may authenticate; none if there is no such user.
    pub(crate) fn mechanisms(&self, name: &str, database: &str) -> Result<Option<Vec<Mechanism>>> {
        if self.is_account(name) {
            return Ok(Some(Mechanism::ALL.to_vec()));
        }
        Ok(self.find(name, database)?.map(|user| user.credentials.mechanisms()))
    }

    /// Returns the user of that name.
    pub(crate) fn find(&self, name: &str, database: &str) -> Result<Option<User>> {
        let Some(collection) = self.collection() else { return Ok(None) };
        let key = User::key(name, database);
        let found = self.engine.reading(&[&collection])?.by_id(&collection, ValueRef::String(&key))?;
        Ok(found.and_then(|found| User::parse(&found.document)))
    }

    /// Returns the users that `which` selects, in the order they were made.
    pub(crate) fn list(&self, which: impl Fn(&User) -> bool) -> Result<Vec<User>> {
        let Some(collection) = self.collection() else { return Ok(Vec::new()) };
        let reading = self.engine.reading(&[&collection])?;
        let (mut users, mut after) = (Vec::new(), None);
        loop {
            let page = reading.natural(&collection, after, Direction::Forward, PAGE, usize::MAX)?;
            let Some(last) = page.last() else { return Ok(users) };
            after = Some(last.number);
            users.extend(page.iter().filter_map(|found| User::parse(&found.document)).filter(&which));
            if users.len() > USERS_MAX {
                return Err(Error::new(
                    Code::OPERATION_FAILED,
                    format!("there are more than {USERS_MAX} users"),
                ));
            }
        }
    }

    /// Stores a new user.
    pub(crate) async fn create(&self, user: User) -> Result<()> {
        let exists =
            Error::location(51003, format!("User \"{}@{}\" already exists", user.name, user.database));
        if self.is_account(&user.name) {
            return Err(exists);
        }
        let collection = match self.collection() {
            Some(collection) => collection,
            None => tokio::task::block_in_place(|| self.make_collection())?,
        };
        let document = RawDocument::from_document(&user.to_document());
        let key = Value::String(User::key(&user.name, &user.database));
        let decide = move |found: Option<&LivingDocument>, _| {
            Ok(Verdict::from(if found.is_some() { Decision::Keep } else { Decision::Insert(document) }))
        };
        let done = self.engine.modify(&collection, Target::Id(key), decide, None).await?;
        if done.before.is_some() { Err(exists) } else { Ok(()) }
    }

    /// Changes a user inside one transaction; false if there is none.
    pub(crate) async fn change(
        &self,
        name: &str,
        database: &str,
        change: impl FnOnce(User) -> User + Send + 'static,
    ) -> Result<bool> {
        let Some(collection) = self.collection() else { return Ok(false) };
        let decide = move |found: Option<&LivingDocument>, _| {
            let user = found.and_then(|found| User::parse(&found.document));
            Ok(Verdict::from(match user {
                Some(user) => Decision::Replace(RawDocument::from_document(&change(user).to_document())),
                None => Decision::Keep,
            }))
        };
        let key = Value::String(User::key(name, database));
        Ok(self.engine.modify(&collection, Target::Id(key), decide, None).await?.before.is_some())
    }

    /// Forgets a user; false if there was none.
    pub(crate) async fn drop(&self, name: &str, database: &str) -> Result<bool> {
        let Some(collection) = self.collection() else { return Ok(false) };
        let decide = |found: Option<&LivingDocument>, _| {
            Ok(Verdict::from(if found.is_some() { Decision::Delete } else { Decision::Keep }))
        };
        let key = Value::String(User::key(name, database));
        Ok(self.engine.modify(&collection, Target::Id(key), decide, None).await?.before.is_some())
    }

    fn collection(&self) -> Option<Arc<Collection>> {
        self.engine.collection(DATABASE, COLLECTION)
    }

    fn make_collection(&self) -> Result<Arc<Collection>> {
        let definition = CollectionDefinition { uuid: random::uuid(), ..CollectionDefinition::default() };
        match self.engine.create_collection(DATABASE, COLLECTION, definition, None) {
            Err(engine::Error::Exists { .. }) => self.collection().ok_or_else(|| {
                Error::new(Code::OPERATION_FAILED, "the collection of users has gone while it was made")
            }),
            made => Ok(made?),
        }
    }
}
