package cosmos

import (
	"net/http"
	"testing"

	"bolide/compat/server"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

const customer = "CO18009186470"

// Orders with 30 and 90 days: every step checked with the clock moved.
func TestOrders(t *testing.T) {
	s := server.Start(t)
	shop := database(t, client(t, s), "shop")
	definition := azcosmos.ContainerProperties{
		ID:                     "orders",
		PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/customerId"}},
		DefaultTimeToLive:      seconds(-1),
	}
	orders := container(t, shop, definition, 20000)
	offer, err := orders.ReadThroughput(background, nil)
	check(t, err)
	throughput, _ := offer.ThroughputProperties.ManualThroughput()
	equal(t, "throughput", throughput, 20000)
	ranges, err := orders.ReadFeedRanges(background, nil)
	check(t, err)
	if len(ranges) < 2 {
		t.Fatalf("%d ranges", len(ranges))
	}
	steps := &orderSteps{t: t, s: s, orders: orders}

	// 30 days of its own.
	order := steps.create(fields{"ttl": 30 * day})
	steps.expiresAt(order.Timestamp + 30*day)

	// Read, extend, replace.
	order = steps.create(fields{"ttl": 30 * day})
	s.Advance(10 * day)
	equal(t, "ttl", string(steps.read().TTL), "2592000")
	order = steps.replace(fields{"ttl": 60 * day})
	steps.expiresAt(order.Timestamp + 60*day)

	// Turned off: -1 is never.
	steps.create(fields{"ttl": 60 * day})
	steps.replace(fields{"ttl": -1})
	s.Advance(400 * day)
	steps.lives(true)

	// Removed from the item: the default -1 applies, it stays.
	order = steps.replace(nil)
	s.MoveTo(order.Timestamp + 400*day)
	steps.lives(true)

	// 90 days by default: this one is older and expires at once; a new one gets its 90 days.
	setDefault(t, orders, seconds(90*day))
	steps.lives(false)
	order = steps.create(nil)
	steps.expiresAt(order.Timestamp + 90*day)

	// No default: nothing expires any more, own ttl or not, and nothing expired returns.
	setDefault(t, orders, nil)
	answer, err := orders.Read(background, nil)
	check(t, err)
	if answer.ContainerProperties.DefaultTimeToLive != nil {
		t.Fatalf("the default is %d", *answer.ContainerProperties.DefaultTimeToLive)
	}
	steps.lives(false)
	steps.create(fields{"ttl": 5})
	s.Advance(400 * day)
	equal(t, "ttl", string(steps.read().TTL), "5")
}

// orderSteps is the program's one order, "SO05".
type orderSteps struct {
	t      *testing.T
	s      *server.Server
	orders *azcosmos.ContainerClient
}

func (o *orderSteps) body(more fields) []byte {
	all := fields{"customerId": customer, "value": 100}
	for name, value := range more {
		all[name] = value
	}
	return item("SO05", all)
}

func (o *orderSteps) key() azcosmos.PartitionKey { return azcosmos.NewPartitionKeyString(customer) }

func (o *orderSteps) create(more fields) stored {
	o.t.Helper()
	answer, err := o.orders.CreateItem(background, o.key(), o.body(more), withContent)
	check(o.t, err)
	return decoded(o.t, answer.Value)
}

func (o *orderSteps) replace(more fields) stored {
	o.t.Helper()
	answer, err := o.orders.ReplaceItem(background, o.key(), "SO05", o.body(more), withContent)
	check(o.t, err)
	return decoded(o.t, answer.Value)
}

func (o *orderSteps) read() stored {
	o.t.Helper()
	answer, err := o.orders.ReadItem(background, o.key(), "SO05", nil)
	check(o.t, err)
	return decoded(o.t, answer.Value)
}

func (o *orderSteps) lives(expected bool) {
	o.t.Helper()
	_, err := o.orders.ReadItem(background, o.key(), "SO05", nil)
	if expected {
		check(o.t, err)
	} else {
		refused(o.t, http.StatusNotFound, err)
	}
}

// expiresAt checks that the order lives a minute before that instant and not from it on.
func (o *orderSteps) expiresAt(instant int64) {
	o.t.Helper()
	o.s.MoveTo(instant - 60)
	o.lives(true)
	o.s.MoveTo(instant)
	o.lives(false)
}
