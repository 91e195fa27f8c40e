//! What a container's definition adds to the query language.

use document::{Path, Value};
use query::{Dialect, Surface};

use super::ContainerDefinition;

impl ContainerDefinition {
    /// Returns the names and defaults that queries over the container may use.
    pub fn dialect(&self) -> Dialect {
        Dialect { computed: self.computed(), embeddings: self.embeddings(), surface: self.surface() }
    }

    /// Returns the surface that the coordinates of the container's geometries are on (`geospatialConfig`).
    pub fn surface(&self) -> Surface {
        let kind =
            self.rest("geospatialConfig").and_then(|config| config.get("type")).and_then(Value::as_str);
        if kind == Some("Geometry") { Surface::Plane } else { Surface::Globe }
    }

    fn computed(&self) -> Vec<(String, String)> {
        let entry = |value: &Value| Some((member(value, "name")?, member(value, "query")?));
        let list = self.rest("computedProperties").and_then(Value::as_array);
        list.unwrap_or_default().iter().filter_map(entry).collect()
    }

    fn embeddings(&self) -> Vec<(Path, String)> {
        let entry = |value: &Value| {
            Some((Path::parse(&member(value, "path")?).ok()?, member(value, "distanceFunction")?))
        };
        let list = self.rest("vectorEmbeddingPolicy").and_then(|policy| policy.get("vectorEmbeddings"));
        list.and_then(Value::as_array).unwrap_or_default().iter().filter_map(entry).collect()
    }
}

fn member(value: &Value, name: &str) -> Option<String> {
    value.get(name)?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computed_properties_and_embeddings_are_found() {
        let text = r#"{"id":"c","partitionKey":{"paths":["/pk"]},
            "computedProperties":[{"name":"low","query":"SELECT VALUE LOWER(c.name) FROM c"}],
            "vectorEmbeddingPolicy":{"vectorEmbeddings":[
                {"path":"/v","dataType":"float32","dimensions":3,"distanceFunction":"dotproduct"}]}}"#;
        let value = document::parse_json(text.as_bytes()).expect("valid JSON");
        let dialect = ContainerDefinition::from_value(&value).expect("valid").dialect();
        assert_eq!(dialect.computed, [("low".to_owned(), "SELECT VALUE LOWER(c.name) FROM c".to_owned())]);
        assert_eq!(dialect.embeddings, [(Path::parse("/v").expect("a path"), "dotproduct".to_owned())]);
    }
}
