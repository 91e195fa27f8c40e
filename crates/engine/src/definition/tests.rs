//! Definitions as clients send them: what is returned, and what is refused.

use document::parse_json;

use super::*;

fn json(text: &str) -> Value {
    parse_json(text.as_bytes()).unwrap()
}

/// Returns a definition with these further members.
fn read(members: &str) -> Result<ContainerDefinition> {
    let comma = if members.is_empty() { "" } else { "," };
    ContainerDefinition::from_value(&json(&format!(
        r#"{{"id":"c","partitionKey":{{"paths":["/pk"],"kind":"Hash","version":2}}{comma}{members}}}"#
    )))
}

/// Returns the member after reading the definition twice; the second reading must change nothing.
fn echo(members: &str, name: &str) -> Option<String> {
    let definition = read(members).unwrap_or_else(|error| panic!("{members}: {error}"));
    let value = definition.to_value();
    assert_eq!(ContainerDefinition::from_value(&value), Ok(definition), "{members}");
    value.get(name).map(Value::to_json)
}

fn refusal(members: &str) -> String {
    read(members).expect_err(members).to_string()
}

#[test]
fn a_bare_definition_comes_back_complete() {
    assert_eq!(
        read("").unwrap().to_value().to_json(),
        concat!(
            r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"#,
            r#""indexingPolicy":{"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],"#,
            r#""excludedPaths":[{"path":"/\"_etag\"/?"}]},"#,
            r#""conflictResolutionPolicy":{"mode":"LastWriterWins","conflictResolutionPath":"/_ts","#,
            r#""conflictResolutionProcedure":""},"geospatialConfig":{"type":"Geography"}}"#,
        )
    );
}

#[test]
fn members_come_back_in_the_order_of_the_service() {
    let value = read(
        r#""fullTextPolicy":{"defaultLanguage":"en-US"},"changeFeedPolicy":{"retentionDuration":10},
           "uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/a","/b/c"]}]},"analyticalStorageTtl":-1,"defaultTtl":60.0,
           "computedProperties":[{"name":"low","query":"SELECT VALUE LOWER(c.n) FROM c"}],
           "clientEncryptionPolicy":{"includedPaths":[],"policyFormatVersion":1},
           "_rid":"x","_self":"y","_etag":"z","_ts":1,"_docs":"docs/","statistics":[]"#,
    )
    .unwrap()
    .to_value();
    let names: Vec<_> = value.as_object().unwrap().iter().map(|(name, _)| name).collect();
    assert_eq!(
        names,
        [
            "id",
            "partitionKey",
            "indexingPolicy",
            "defaultTtl",
            "analyticalStorageTtl",
            "uniqueKeyPolicy",
            "conflictResolutionPolicy",
            "geospatialConfig",
            "computedProperties",
            "changeFeedPolicy",
            "fullTextPolicy",
            "clientEncryptionPolicy"
        ]
    );
    assert_eq!(value.get("defaultTtl"), Some(&Value::Int(60)));
}

#[test]
fn t4_default_ttl_is_echoed_when_on_and_absent_when_off() {
    for (member, expected) in [
        ("", None),
        (r#""defaultTtl":null"#, None),
        (r#""defaultTtl":-1"#, Some("-1")),
        (r#""defaultTtl":20.0"#, Some("20")),
    ] {
        assert_eq!(echo(member, "defaultTtl").as_deref(), expected, "{member}");
    }
    assert!(refusal(r#""defaultTtl":0"#).starts_with("The input defaultTtl '0' is invalid."));
}

#[test]
fn t25_no_ttl_without_an_index() {
    for ttl in ["-1", "1"] {
        assert_eq!(
            refusal(&format!(r#""indexingPolicy":{{"indexingMode":"none"}},"defaultTtl":{ttl}"#)),
            "Indexing mode value cannot be 'none' when 'defaultTtl' is specified in the collection"
        );
    }
    assert!(read(r#""indexingPolicy":{"indexingMode":"none"},"defaultTtl":null"#).is_ok());
    assert!(read(r#""indexingPolicy":{"indexingMode":"lazy"},"defaultTtl":1"#).is_ok());
}

#[test]
fn sparse_indexing_policies_are_completed() {
    let complete = |mode: &str, included: &str, excluded: &str| {
        format!(
            r#"{{"indexingMode":"{mode}","automatic":{},"includedPaths":[{included}],"excludedPaths":[{excluded}]}}"#,
            mode != "none"
        )
    };
    let (root, etag) = (r#"{"path":"/*"}"#, r#"{"path":"/\"_etag\"/?"}"#);
    for (policy, expected) in [
        ("{}", complete("consistent", root, etag)),
        ("null", complete("consistent", root, etag)),
        (r#"{"indexingMode":"Consistent","automatic":true}"#, complete("consistent", root, etag)),
        (r#"{"indexingMode":"LAZY"}"#, complete("lazy", root, etag)),
        (r#"{"indexingMode":"none"}"#, complete("none", "", "")),
        (r#"{"indexingMode":"none","automatic":false}"#, complete("none", "", "")),
        (
            r#"{"includedPaths":[{"path":"/","indexes":[{"kind":"Hash"}]}]}"#,
            complete("consistent", root, etag),
        ),
        (r#"{"includedPaths":[],"excludedPaths":[]}"#, complete("consistent", root, etag)),
        (
            r#"{"excludedPaths":[{"path":"/\"systemMetadata\"/*"}]}"#,
            complete("consistent", root, &format!(r#"{{"path":"/\"systemMetadata\"/*"}},{etag}"#)),
        ),
        (
            r#"{"includedPaths":[{"path":"/a/?"}],"excludedPaths":[{"path":"/_etag/?"},{"path":"/*"}]}"#,
            complete("consistent", r#"{"path":"/a/?"}"#, r#"{"path":"/_etag/?"},{"path":"/*"}"#),
        ),
        (
            r#"{"includedPaths":[{"path":"/*"},{"path":"/\"_etag\"/?"}]}"#,
            complete("consistent", &format!("{root},{etag}"), ""),
        ),
    ] {
        assert_eq!(
            echo(&format!(r#""indexingPolicy":{policy}"#), "indexingPolicy"),
            Some(expected),
            "{policy}"
        );
    }
}

#[test]
fn composite_and_spatial_indexes_come_back() {
    let given = concat!(
        r#"{"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],"#,
        r#""excludedPaths":[{"path":"/\"_etag\"/?"}],"#,
        r#""compositeIndexes":[[{"path":"/a","order":"ascending"},{"path":"/b/c","order":"descending"}]],"#,
        r#""spatialIndexes":[{"path":"/loc/*","types":["Point","Polygon"],"#,
        r#""boundingBox":{"xmin":0,"ymin":0,"xmax":10,"ymax":1.5}}]}"#,
    );
    assert_eq!(echo(&format!(r#""indexingPolicy":{given}"#), "indexingPolicy").as_deref(), Some(given));
    let sparse = r#"{"compositeIndexes":[[{"path":"/a"},{"path":"/b"}]],"spatialIndexes":[{"path":"/loc/?","types":["point"]}]}"#;
    let policy = read(&format!(r#""indexingPolicy":{sparse}"#)).unwrap().indexing;
    assert!(policy.composites[0].iter().all(|path| path.order == Order::Ascending));
    assert_eq!(policy.spatial[0].types, ["Point"]);
}

/// Returns a definition with a spatial index of that surface and extent.
fn spatial(surface: &str, extent: &str) -> ContainerDefinition {
    let members = format!(
        r#""geospatialConfig":{{"type":"{surface}"}},
           "indexingPolicy":{{"spatialIndexes":[{{"path":"/loc/*","types":["Point"]{extent}}}]}}"#
    );
    read(&members).unwrap()
}

#[test]
fn a_plane_has_an_extent_and_the_earth_has_none() {
    let extent = |corners: &str| format!(r#","boundingBox":{{{corners}}}"#);
    let good = extent(r#""xmin":-10,"ymin":-5.5,"xmax":10,"ymax":5"#);
    for (surface, extent, reason) in [
        ("Geography", String::new(), ""),
        ("Geometry", good.clone(), ""),
        ("Geography", good.clone(), "'/loc/*' must not have a boundingBox"),
        ("Geometry", String::new(), "'/loc/*' must have a boundingBox"),
        (
            "Geometry",
            extent(r#""xmin":10,"ymin":0,"xmax":10,"ymax":5"#),
            "xmin below xmax, but has 10 and 10",
        ),
        ("Geometry", extent(r#""xmin":0,"ymin":5,"xmax":10,"ymax":-5"#), "ymin below ymax, but has 5 and -5"),
    ] {
        let checked = check_new(&spatial(surface, &extent)).map_err(|error| error.to_string());
        match reason {
            "" => assert_eq!(checked, Ok(()), "{surface} {extent}"),
            reason => assert!(checked.is_err_and(|error| error.contains(reason)), "{surface} {extent}"),
        }
    }
    // A container from before this check may change anything else, and its invalid index only into a valid one.
    let old = spatial("Geometry", "");
    let mut other = old.clone();
    other.default_ttl = DefaultTtl::Never;
    assert_eq!(check_replacement(&old, &other), Ok(()));
    assert_eq!(check_replacement(&old, &spatial("Geometry", &good)), Ok(()));
    assert!(check_replacement(&spatial("Geometry", &good), &old).is_err());
    assert!(check_replacement(&spatial("Geography", ""), &old).is_err());
}

#[test]
fn a_partition_key_comes_back_as_it_was_given() {
    let made = |key: &str| {
        ContainerDefinition::from_value(&json(&format!(r#"{{"id":"c","partitionKey":{key}}}"#))).unwrap()
    };
    let (without, with) = (made(r#"{"paths":["/pk"]}"#), made(r#"{"paths":["/pk"],"version":1}"#));
    let shown = |it: &ContainerDefinition| it.partition_key.to_value().get("version").and_then(Value::as_i64);
    assert_eq!((shown(&without), shown(&with)), (None, Some(1)));
    assert_eq!(
        shown(&ContainerDefinition::from_value(&without.to_value()).unwrap()),
        None,
        "as it is stored"
    );
    // The same key in another form: the container keeps its own.
    for (old, mut new) in [(&without, with.clone()), (&with, without.clone())] {
        assert_eq!(check_replacement(old, &new), Ok(()));
        new.keep_what_clients_leave_out(old);
        assert_eq!(shown(&new), shown(old));
    }
    let second = made(r#"{"paths":["/pk"],"version":2}"#);
    assert!(check_replacement(&without, &second).is_err());
    // An older container may have a path that no new one can have.
    let old = made(r#"{"paths":["/id ds"]}"#);
    assert!(check_new(&old).unwrap_err().to_string().contains("'/id ds' could not be accepted"));
    assert_eq!(check_replacement(&old, &old.clone()), Ok(()));
}

#[test]
fn wrong_indexing_policies_are_refused() {
    for (policy, reason) in [
        ("[]", "'indexingPolicy' must be an object"),
        (r#"{"mode":"none"}"#, "unknown property 'mode'"),
        (r#"{"indexingMode":"often"}"#, "consistent, lazy, none"),
        (r#"{"indexingMode":"none","automatic":true}"#, "requires that 'automatic' is false"),
        (r#"{"automatic":"yes"}"#, "true or false"),
        (r#"{"includedPaths":{}}"#, "'includedPaths' must be an array"),
        (r#"{"includedPaths":[{}]}"#, "'path' is required"),
        (r#"{"includedPaths":["/*"]}"#, "must be an object"),
        (r#"{"includedPaths":[{"path":"/a"}]}"#, "could not be accepted, failed near position '2'"),
        (r#"{"includedPaths":[{"path":"/a/?"}]}"#, "special mandatory indexing path"),
        (r#"{"includedPaths":[{"path":"/*"},{"path":"/"}]}"#, "given twice"),
        (
            r#"{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/*"}]}"#,
            "both included and excluded",
        ),
        (r#"{"excludedPaths":[{"path":"/*","indexes":[]}]}"#, "unknown property 'indexes'"),
        (r#"{"compositeIndexes":[[{"path":"/a"}]]}"#, "at least 2 paths"),
        (r#"{"compositeIndexes":[[{"path":"/a"},{"path":"/a"}]]}"#, "twice in one composite"),
        (r#"{"compositeIndexes":[[{"path":"/a"},{"path":"/b/?"}]]}"#, "wildcards are not allowed"),
        (r#"{"compositeIndexes":[[{"path":"/a"},{"path":"/b","order":"up"}]]}"#, "ascending, descending"),
        (r#"{"spatialIndexes":[{"path":"/a/*","types":["Circle"]}]}"#, "Point, LineString"),
        (r#"{"spatialIndexes":[{"path":"/a/*"}]}"#, "must name in 'types' at least one of Point"),
        (r#"{"fullTextIndexes":[{"path":"/text"}]}"#, "path::/text not matching"),
        (r#"{"fullTextIndexes":[{"not_path":"/text"}]}"#, "unknown property 'not_path'"),
        (r#"{"fullTextIndexes":[{"path":"text"}]}"#, "must start with '/'"),
        (r#"{"vectorIndexes":[{"path":"/v","type":"flat"}]}"#, "path::/v not matching in Embedding's path."),
    ] {
        let error = refusal(&format!(r#""indexingPolicy":{policy}"#));
        assert!(error.contains(reason), "{policy}: {error}");
    }
}

#[test]
fn vectors_are_kept_and_checked() {
    let with_index = |index: &str| {
        read(&format!(
            r#""indexingPolicy":{{"vectorIndexes":[{index}]}},"vectorEmbeddingPolicy":{{"vectorEmbeddings":[
               {{"path":"/v","dataType":"float32","dimensions":256,"distanceFunction":"euclidean"}},
               {{"path":"/w","dataType":"int8","dimensions":550,"distanceFunction":"dotproduct"}}]}}"#
        ))
    };
    let index = r#"{"path":"/v","type":"diskANN","quantizerType":"product","quantizationByteSize":8,"indexingSearchListSize":50,"vectorIndexShardKey":["/country/city"]}"#;
    let definition = with_index(index).unwrap();
    assert_eq!(definition.indexing.vectors, [json(index)]);
    assert_eq!(ContainerDefinition::from_value(&definition.to_value()), Ok(definition));
    for (index, reason) in [
        (r#"{"path":"/x","type":"flat"}"#, "path::/x not matching in Embedding's path."),
        (r#"{"path":"/v","type":"notFlat"}"#, "Index Type::notFlat is invalid"),
        (
            r#"{"path":"/v","type":"quantizedFlat","quantizationByteSize":0}"#,
            "QuantizationByteSize value :: 0 is out of range. The allowed range is between 1 and 256.",
        ),
        (
            r#"{"path":"/w","type":"quantizedFlat","quantizationByteSize":513}"#,
            "QuantizationByteSize value :: 513 is out of range.",
        ),
        (
            r#"{"path":"/v","type":"diskANN","indexingSearchListSize":5}"#,
            "IndexingSearchListSize value :: 5 is out of range. The allowed range is between 25 and 500.",
        ),
        (
            r#"{"path":"/v","type":"diskANN","vectorIndexShardKey":["country"]}"#,
            "The Vector Indexing Policy has an invalid Shard Path: country.",
        ),
        (
            r#"{"path":"/v","type":"diskANN","vectorIndexShardKey":["/a","/b","/c"]}"#,
            "The number of shard paths defined in the Vector Indexing Policy: 3 exceeds the maximum: 1.",
        ),
        (
            r#"{"path":"/v","type":"diskANN","vectorIndexShardKey":"/a"}"#,
            "One of the specified inputs is invalid",
        ),
    ] {
        let error = with_index(index).unwrap_err().to_string();
        assert!(error.contains(reason), "{index}: {error}");
    }
}

#[test]
fn wrong_properties_are_refused_by_name() {
    for (member, reason) in [
        (
            r#""vectorEmbeddingPolicy":{"vectorEmbeddings":[{"path":"/v","dataType":"float33","dimensions":2,"distanceFunction":"cosine"}]}"#,
            "Vector Embedding Policy has an invalid DataType:float33",
        ),
        (
            r#""vectorEmbeddingPolicy":{"vectorEmbeddings":[{"path":"/v","dataType":"int8","dimensions":8000,"distanceFunction":"cosine"}]}"#,
            "Dimensions:8000 which is more than the maximum supported value",
        ),
        (
            r#""vectorEmbeddingPolicy":{"vectorEmbeddings":[{"path":"/v","dataType":"int8","dimensions":-1,"distanceFunction":"cosine"}]}"#,
            "The Vector Embedding Policy has Dimensions:-1",
        ),
        (
            r#""vectorEmbeddingPolicy":{"vectorEmbeddings":[{"path":"/v","dataType":"int8","dimensions":2,"distanceFunction":"handMeasured"}]}"#,
            "invalid DistanceFunction:handMeasured",
        ),
        (
            r#""vectorEmbeddingPolicy":{"vectorEmbeddings":[{"path":"/v","embeddingSource":{}}]}"#,
            "'embeddingSource' of a container is not supported",
        ),
        (
            r#""fullTextPolicy":{"defaultLanguage":"en-US","fullTextPaths":[{"path":"abstract"}]}"#,
            "The Full Text Policy contains an invalid Path: abstract",
        ),
        (r#""fullTextPolicy":{"defaultLanguage":"spa-SPA"}"#, "unsupported language spa-SPA"),
        (
            r#""fullTextPolicy":{"fullTextPaths":[{"path":"/a","language":"spa-SPA"}]}"#,
            "unsupported language spa-SPA",
        ),
        (r#""computedProperties":{"name":"a","query":"b"}"#, "One of the specified inputs is invalid"),
        (r#""computedProperties":[{"name":"a"}]"#, "'query' is required"),
        (r#""changeFeedPolicy":{"retentionDuration":"10"}"#, "number of minutes"),
        (r#""conflictResolutionPolicy":{"mode":"Random"}"#, "LastWriterWins, Custom"),
        (r#""geospatialConfig":{"type":"Flat"}"#, "Geography, Geometry"),
        (r#""clientEncryptionPolicy":[]"#, "'clientEncryptionPolicy' must be an object"),
        (r#""analyticalStorageTtl":1.5"#, "analyticalStorageTtl '1.5' is invalid"),
        (r#""uniqueKeyPolicy":{"uniqueKeys":[{"paths":[]}]}"#, "1 to 16 paths"),
        (r#""uniqueKeyPolicy":{"uniqueKeys":[{"paths":["a"]}]}"#, "must start with '/'"),
        (r#""uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/a","/a"]}]}"#, "given twice"),
        (r#""uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/a/*"]}]}"#, "wildcards"),
        (r#""ttlPropertyPath":"created""#, "it must start with '/'"),
        (r#""ttlPropertyPath":5"#, "'ttlPropertyPath' must be"),
        (
            r#""defaultTTL":5"#,
            "a container has no property 'defaultTTL'; the property 'defaultTtl' is spelled so",
        ),
        (r#""IndexingPolicy":{}"#, "the property 'indexingPolicy' is spelled so"),
        (r#""MaterializedViewDefinition":{}"#, "the property 'materializedViewDefinition' is spelled so"),
    ] {
        let error = refusal(member);
        assert!(error.contains(reason), "{member}: {error}");
    }
    let keys = |count: usize| {
        let keys: Vec<_> = (0..count).map(|key| format!(r#"{{"paths":["/{key}"]}}"#)).collect();
        read(&format!(r#""uniqueKeyPolicy":{{"uniqueKeys":[{}]}}"#, keys.join(",")))
    };
    assert_eq!(keys(10).unwrap().unique_keys.len(), 10);
    assert!(keys(11).unwrap_err().to_string().contains("has 11 entries, the limit is 10"));
}

#[test]
fn id_and_partition_key_are_required() {
    for (definition, reason) in [
        ("5", "must be a JSON object"),
        (r#"{"partitionKey":{"paths":["/pk"]}}"#, "'id' is required"),
        (r#"{"id":5,"partitionKey":{"paths":["/pk"]}}"#, "'id' must be a string"),
        (r#"{"id":"a/b","partitionKey":{"paths":["/pk"]}}"#, "a/b"),
        (r#"{"id":"c"}"#, "'partitionKey' is required"),
        (r#"{"id":"c","partitionKey":{"paths":["pk"]}}"#, "path 'pk' could not be accepted"),
        (r#"{"id":"c","partitionKey":{"paths":["/_ts"]}}"#, "'/_ts' is a property of the system"),
    ] {
        let error = ContainerDefinition::from_value(&json(definition)).unwrap_err().to_string();
        assert!(error.contains(reason), "{definition}: {error}");
    }
    let javascript = r#"{"id":"c","partitionKey":{"paths":["/_partitionKey"]}}"#;
    assert!(ContainerDefinition::from_value(&json(javascript)).is_ok());
}

#[test]
fn a_replacement_keeps_what_is_fixed() {
    let fixed = r#""uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/email"]}]},
        "indexingPolicy":{"vectorIndexes":[{"path":"/v","type":"flat"}]},"vectorEmbeddingPolicy":{"vectorEmbeddings":
        [{"path":"/v","dataType":"float32","dimensions":256,"distanceFunction":"euclidean"}]}"#;
    let old = read(fixed).unwrap();
    let mut new = read(&format!(r#"{fixed},"defaultTtl":5"#)).unwrap();
    assert_eq!(check_replacement(&old, &new), Ok(()));
    new.id = "d".to_owned();
    assert!(check_replacement(&old, &new).unwrap_err().to_string().contains("cannot be renamed"));
    for (change, reason) in [
        (fixed.replace("/email", "/mail"), "The unique key policy"),
        (fixed.replace(r#""flat""#, r#""quantizedFlat""#), "Paths in existing vector indexing policy cannot"),
        (fixed.replace("256", "384"), "Paths in existing embedding policy cannot be modified"),
    ] {
        let error = check_replacement(&old, &read(&change).unwrap()).unwrap_err();
        assert!(
            matches!(&error, DefinitionError::Immutable { message } if message.contains(reason)),
            "{error}"
        );
    }
    let other_key =
        ContainerDefinition::from_value(&json(r#"{"id":"c","partitionKey":{"paths":["/other"]}}"#));
    let error = check_replacement(&read("").unwrap(), &other_key.unwrap()).unwrap_err().to_string();
    assert!(error.contains("The partition key of the container 'c' cannot be changed"), "{error}");
}

#[test]
fn properties_that_are_not_known_are_kept_in_their_order_behind_the_others() {
    let definition = read(
        r#""zeta":"","schemaPolicy":{"a":[1,null]},"none":null,"clientEncryptionPolicy":{"includedPaths":[]},"alpha":1.50"#,
    )
    .unwrap();
    let value = definition.to_value();
    assert_eq!(ContainerDefinition::from_value(&value).as_ref(), Ok(&definition));
    let text = value.to_json();
    let kept = r#""clientEncryptionPolicy":{"includedPaths":[]},"zeta":"","schemaPolicy":{"a":[1,null]},"alpha":1.5}"#;
    assert!(text.ends_with(kept), "{text}");
    // A replacement says all of them again.
    let mut next = read(r#""beta":2"#).unwrap();
    next.keep_what_clients_leave_out(&definition);
    assert!(next.to_value().to_json().ends_with(r#""geospatialConfig":{"type":"Geography"},"beta":2}"#));
    assert!(definition.check_known().is_err() && read("").unwrap().check_known().is_ok());
    let large = format!(r#""large":"{}""#, "x".repeat(64 * 1024));
    assert!(
        refusal(&large).contains("up to 'large', have 65543 bytes; the limit is 65536"),
        "{}",
        refusal(&large)
    );
}

#[test]
fn an_encryption_policy_with_keys_is_refused_when_it_is_new() {
    let policy =
        |paths: &str| read(&format!(r#""clientEncryptionPolicy":{{"includedPaths":[{paths}]}}"#)).unwrap();
    let encrypted = policy(r#"{"path":"/ssn","clientEncryptionKeyId":"key1","encryptionType":"Randomized"}"#);
    let error = check_new(&encrypted).unwrap_err().to_string();
    assert!(
        error.contains(r#"The client encryption key "key1""#) && error.contains(r#"path "/ssn""#),
        "{error}"
    );
    let plain = policy("");
    assert_eq!(check_new(&plain), Ok(()));
    assert!(check_replacement(&plain, &encrypted).is_err());
    // A container that has such a policy from before can be replaced all the same.
    assert_eq!(check_replacement(&encrypted, &encrypted), Ok(()));
}
