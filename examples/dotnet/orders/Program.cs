// Orders that expire: what the TTL documentation of Cosmos DB shows in C#, step by step.
//
// Usage: orders ENDPOINT KEY. After each step the program waits for Enter, so that the clock of a test server can be moved; then it
// reads the order. docs/guides/dotnet.md says how to run it and what to move.
using System.Net;
using Microsoft.Azure.Cosmos;
using Newtonsoft.Json;

const int Day = 60 * 60 * 24;
const string CustomerId = "CO18009186470";

if (args.Length != 2)
{
    Console.Error.WriteLine("usage: orders ENDPOINT KEY");
    return 2;
}

using var client = new CosmosClient(args[0], args[1], new CosmosClientOptions
{
    // Nothing below depends on the mode; ConnectionMode.Direct is the default of the SDK.
    ConnectionMode = ConnectionMode.Gateway,
    LimitToEndpoint = true,
});
var customer = new PartitionKey(CustomerId);
Database database = await client.CreateDatabaseIfNotExistsAsync("shop");

// TTL is on and there is no default: an item expires only if it has a ttl of its own.
Container orders = await database.CreateContainerAsync(
    new ContainerProperties("orders", "/customerId") { DefaultTimeToLive = -1 }, throughput: 20000);

// 30 days from this write on.
await orders.CreateItemAsync(new Order { Id = "SO05", CustomerId = CustomerId, TimeToLive = 30 * Day }, customer);
await Step("SO05", "created with a ttl of 30 days");

// Extended: the countdown starts again with the write. The etag keeps a change of somebody else's from being overwritten.
ItemResponse<Order> read = await orders.ReadItemAsync<Order>("SO05", customer);
read.Resource.TimeToLive = 60 * Day;
await orders.ReplaceItemAsync(read.Resource, "SO05", customer, new ItemRequestOptions { IfMatchEtag = read.ETag });
await Step("SO05", "extended to 60 days from now on");

// Turned off for the item: without a ttl of its own it has the container's default, which is never.
read = await orders.ReadItemAsync<Order>("SO05", customer);
read.Resource.TimeToLive = null;
await orders.ReplaceItemAsync(read.Resource, "SO05", customer);
await Step("SO05", "its ttl removed");

// A default for all that have none of their own: 90 days after their last write. It applies to what is already there.
ContainerResponse container = await orders.ReadContainerAsync();
container.Resource.DefaultTimeToLive = 90 * Day;
await orders.ReplaceContainerAsync(container.Resource);
await orders.CreateItemAsync(new Order { Id = "SO06", CustomerId = CustomerId }, customer);
await Step("SO06", "created under a default of 90 days");

// Turned off for the container: nothing expires any more, whatever ttl it has. What has expired does not come back.
container.Resource.DefaultTimeToLive = null;
await orders.ReplaceContainerAsync(container.Resource);
await orders.CreateItemAsync(new Order { Id = "SO07", CustomerId = CustomerId, TimeToLive = 5 }, customer);
await Step("SO07", "created with a ttl of 5 seconds while TTL is off");

await database.DeleteAsync();
return 0;

async Task Step(string id, string done)
{
    Console.WriteLine($"{id}: {done}. Enter to read it");
    Console.ReadLine();
    Console.WriteLine($"{id}: {await State(id)}");
}

async Task<string> State(string id)
{
    try
    {
        ItemResponse<Order> found = await orders.ReadItemAsync<Order>(id, customer);
        return found.StatusCode == HttpStatusCode.OK ? "alive" : found.StatusCode.ToString();
    }
    catch (CosmosException missing) when (missing.StatusCode == HttpStatusCode.NotFound)
    {
        return "gone";
    }
}

class Order
{
    [JsonProperty("id")] public string Id { get; set; } = "";
    [JsonProperty("customerId")] public string CustomerId { get; set; } = "";

    // Left out when null: an item with "ttl": null is refused.
    [JsonProperty("ttl", NullValueHandling = NullValueHandling.Ignore)] public int? TimeToLive { get; set; }
}
