"""Containers' definitions: what comes back as it was given, what is refused as the service refuses it, and geometry on a plane."""

import uuid

import pytest
from azure.cosmos import PartitionKey


@pytest.fixture
def create(database):
    def create(key=None, **more):
        return database.create_container("c-" + uuid.uuid4().hex, key or PartitionKey(path="/pk"), **more)

    return create


@pytest.mark.parametrize("version", [None, 1, 2])
def test_a_version_is_shown_only_if_it_was_given(each_server, version):
    key = {"paths": ["/pk"], "kind": "Hash"}
    if version is not None:
        key["version"] = version
    with each_server.client() as client:
        database = client.create_database_if_not_exists("versions-of-keys")
        container = database.create_container("c-" + uuid.uuid4().hex, dict(key))
        assert container.read()["partitionKey"] == key
        database.replace_container(container, dict(key), default_ttl=60)
        shown = container.read()
        assert (shown["partitionKey"], shown["defaultTtl"]) == (key, 60)
        for n in range(20):
            container.create_item({"id": f"{n}", "pk": f"k{n}"})
            # The client hashes the key by the version that it was shown.
            feed_range = container.feed_range_from_partition_key(f"k{n}")
            found = container.query_items("SELECT VALUE c.id FROM c", feed_range=feed_range)
            assert list(found) == [f"{n}"]


def test_an_indexing_policy_is_automatic_unless_it_says_otherwise(create):
    container = create(indexing_policy={"indexingMode": "consistent"})
    assert container.read()["indexingPolicy"]["automatic"] is True


@pytest.mark.parametrize("path, position", [("/id ds", 4), ("pk", 0), ("//pk", 1), ("/a/", 3), ("/a/*", 3)])
def test_a_path_that_is_none_is_refused_at_its_position(create, refused, path, position):
    error = refused(400, create, PartitionKey(path=path))
    words = f"The partition key component definition path '{path}' could not be accepted, failed near position '{position}'."
    assert words in error.message


def test_spatial_indexes_name_their_types_and_have_no_extent_on_the_earth(create, refused):
    def policy(**index):
        return {"indexing_policy": {"spatialIndexes": [{"path": "/at/*", **index}]}}

    create(**policy(types=["Point", "Polygon"]))
    refused(400, create, **policy())
    refused(400, create, **policy(types=["Point"], boundingBox={"xmin": 0, "ymin": 0, "xmax": 1, "ymax": 1}))


@pytest.fixture
def create_flat(each_server):
    """create_flat(**index) makes a container of planar geometry with one spatial index.

    `create_container` has no argument for `geospatialConfig`, so the definition goes to the layer below it.
    """
    with each_server.client() as client:
        database = client.create_database_if_not_exists("flat")

        def create(**index):
            definition = {
                "id": "c-" + uuid.uuid4().hex,
                "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
                "geospatialConfig": {"type": "Geometry"},
                "indexingPolicy": {"spatialIndexes": [{"path": "/at/*", "types": ["Point", "Polygon"], **index}]},
            }
            client.client_connection.CreateContainer(database.database_link, definition)
            return database.get_container_client(definition["id"])

        yield create


def test_geometry_is_measured_on_a_plane(create_flat):
    container = create_flat(boundingBox={"xmin": -1000, "ymin": -1000, "xmax": 1000, "ymax": 1000})
    assert container.read()["geospatialConfig"] == {"type": "Geometry"}
    square = {"type": "Polygon", "coordinates": [[[1, 1], [11, 1], [11, 11], [1, 11], [1, 1]]]}
    for name, (x, y) in {"a": (3, 4), "b": (300, -400), "c": (0, 0)}.items():
        container.create_item({"id": name, "pk": name, "at": {"type": "Point", "coordinates": [x, y]}})
    container.create_item({"id": "square", "pk": "square", "at": square})
    origin = {"type": "Point", "coordinates": [0, 0]}
    for query, expected in [
        ("SELECT VALUE ST_DISTANCE(c.at, @origin) FROM c ORDER BY c.id", [5, 500, 0, 2**0.5]),
        ("SELECT VALUE c.id FROM c WHERE ST_DISTANCE(c.at, @origin) <= 5 ORDER BY c.id", ["a", "c", "square"]),
        ("SELECT VALUE c.id FROM c WHERE ST_WITHIN(c.at, @square) AND c.id != 'square' ORDER BY c.id", ["a"]),
        ("SELECT VALUE c.id FROM c WHERE ST_INTERSECTS(c.at, @square) ORDER BY c.id", ["a", "square"]),
        ("SELECT VALUE ST_AREA(c.at) FROM c WHERE c.id = 'square'", [100]),
        ("SELECT VALUE COUNT(1) FROM c WHERE ST_ISVALID(c.at)", [4]),
        ("SELECT VALUE MAX(ST_DISTANCE(c.at, @origin)) FROM c", [500]),
    ]:
        parameters = [{"name": "@origin", "value": origin}, {"name": "@square", "value": square}]
        found = container.query_items(query, parameters=parameters, enable_cross_partition_query=True)
        assert list(found) == expected, query


@pytest.mark.parametrize("index, named", [
    ({}, "boundingBox"),
    ({"boundingBox": {"xmin": 5, "ymin": 0, "xmax": 5, "ymax": 1}}, "boundingBox"),
    ({"boundingBox": {"xmin": 0, "ymin": 1, "xmax": 5, "ymax": 0}}, "boundingBox"),
    ({"boundingBox": {"xmin": 0, "ymin": 0, "xmax": 5}}, "ymax"),
], ids=["none", "no width", "upside down", "not whole"])
def test_a_spatial_index_on_a_plane_has_an_extent(create_flat, refused, index, named):
    assert named in refused(400, create_flat, **index).message


def test_full_text_languages_are_tags_or_numbers(create, refused):
    def policy(language):
        return {"full_text_policy": {"defaultLanguage": language, "fullTextPaths": [{"path": "/text", "language": language}]}}

    for language in ("en-US", "1033"):
        assert create(**policy(language)).read()["fullTextPolicy"]["defaultLanguage"] == language
    error = refused(400, create, **policy("spa-SPA"))
    assert "The Full Text Policy contains an unsupported language spa-SPA. Supported languages are:" in error.message
