//! `/_bolide/containers`: everything that holds items, of both APIs, with its figures. `/_bolide/container/{db}/{coll}`:
//! the definition of one container, and its creation from such a definition.

use document::Value;
use engine::{Api, ContainerDefinition, Engine, Owner, Throughput};

use super::{number, reply, tally, ttl};
use crate::handlers::call::Call;
use crate::message::reply::Reply;
use crate::protocol::error::Error;
use crate::protocol::json::{member, object, parse_object, text};

/// Lists all containers and collections.
pub(super) async fn list(call: &Call) -> Result<Reply, Error> {
    let all = call.blocking(|engine| {
        let all = engine.purge_figures_of_all()?;
        all.iter().map(|(owner, _)| show(engine, owner)).collect::<Result<Vec<_>, Error>>()
    });
    Ok(reply(&object([member("containers", Value::Array(all.await?))])))
}

fn show(engine: &Engine, owner: &Owner) -> Result<Value, Error> {
    let (usage, figures) = (engine.usage_of(owner)?, engine.purge_figures(owner)?);
    Ok(object([
        member("api", text(api_name(owner.api()))),
        member("database", text(owner.database())),
        member("container", text(owner.name())),
        member("defaultTtl", owner.default_ttl().to_member().unwrap_or(Value::Null)),
        member("dateRules", number(owner.date_rules().len() as u64)),
        member("held", Value::Bool(owner.lifecycle().hold.is_some())),
        member("living", tally(usage.living)),
        member("backlog", tally(usage.expired)),
        member("purged", tally(figures.purged)),
        member("nextDue", figures.next_due.map_or(Value::Null, |time| number(time.seconds()))),
    ]))
}

/// Returns the API's name in paths and answers.
pub(super) fn api_name(api: Api) -> &'static str {
    match api {
        Api::NoSql => "nosql",
        Api::MongoDb => "mongodb",
    }
}

/// Returns the definition of a container.
pub(super) async fn describe(call: &Call) -> Result<Reply, Error> {
    let Owner::Container(container) = ttl::owner(call)? else {
        return Err(Error::BadRequest(
            "A collection is described by commands of the MongoDB API: /_bolide/command.".to_owned(),
        ));
    };
    let offers = call.engine().offers();
    let offer = offers.iter().find(|offer| offer.resource == container.self_link());
    let throughput = offer.map_or(Value::Null, |offer| match offer.throughput {
        Throughput::Manual(figure) => object([member("manual", number(figure.into()))]),
        Throughput::Autoscale { max, .. } => object([member("autoscale", number(max.into()))]),
    });
    Ok(reply(&object([
        member("definition", container.definition.to_value()),
        member("throughput", throughput),
    ])))
}

/// Creates the container that the path names, and its database, unless they exist.
pub(super) async fn make(call: &Call) -> Result<Reply, Error> {
    let body = parse_object(&call.body)?;
    let definition = body.get("definition").ok_or_else(|| {
        Error::BadRequest("The body must be {\"definition\": …}, perhaps with a \"throughput\".".to_owned())
    })?;
    let throughput = throughput(body.get("throughput"))?;
    let mut definition = definition.clone();
    let members = definition.as_object_mut();
    let members = members.ok_or_else(|| Error::BadRequest("'definition' must be an object.".to_owned()))?;
    members.insert("id", call.head.path.at(3));
    let definition = ContainerDefinition::from_value(&definition).map_err(engine::Error::from)?;
    let (database, name) = (call.head.path.at(2).to_owned(), call.head.path.at(3).to_owned());
    let made = call.blocking(move |engine| {
        let database = match engine.create_database(&database, None) {
            Err(engine::Error::Exists { .. }) => engine.database(&database)?,
            made => made?,
        };
        let throughput =
            throughput.or(if database.throughput().is_some() { None } else { Some(Throughput::DEFAULT) });
        match engine.create_container(&database, definition, throughput) {
            Err(engine::Error::Exists { .. }) => Ok((false, engine.container(&database, &name)?)),
            made => Ok((true, made?)),
        }
    });
    let (created, container) = made.await?;
    Ok(reply(&object([
        member("created", Value::Bool(created)),
        member("definition", container.definition.to_value()),
    ])))
}

fn throughput(wanted: Option<&Value>) -> Result<Option<Throughput>, Error> {
    let wanted = match wanted {
        None | Some(Value::Null) => return Ok(None),
        Some(wanted) => wanted,
    };
    let rate = |name| wanted.get(name).and_then(Value::as_i64).and_then(|rate| u32::try_from(rate).ok());
    let throughput = match (rate("manual"), rate("autoscale")) {
        (Some(figure), None) => Throughput::Manual(figure),
        (None, Some(max)) => Throughput::autoscale(max),
        _ => {
            return Err(Error::BadRequest(
                "'throughput' must be {\"manual\": units} or {\"autoscale\": units}.".to_owned(),
            ));
        }
    };
    Ok(Some(throughput.check()?))
}
