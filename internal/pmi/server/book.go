package server

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/softrnic/softrnic/internal/pmi/wire"
)

// Limits that PMI-1's processes are told, sizes of arrays in C. They are hydra's
// and Slurm's.
const (
	maxName  = 256
	maxKey   = 64
	maxValue = 1024
)

// maxKeys bounds what one job's ranks can make the manager keep.
const maxKeys = 1 << 20

// book is what the manager knows of a job: who is how far, and what they have put.
// It does no I/O.
type book struct {
	Options
	mapping string
	ranks   []rankBook
	known   map[string]string
	nodes   []map[string]string // attributes of a node
	waiting int                 // ranks at the fence
	fences  int                 // that all have passed
}

// rankBook is what is known of one rank.
type rankBook struct {
	version wire.Version // agreed on, or 0
	state   State
	ended   bool         // its process
	fence   wire.Message // by which it has come to one
	asks    wire.Message // for an attribute of its node that is not there yet
}

// reply is a message for a rank.
type reply struct {
	rank    int
	version wire.Version
	message wire.Message
}

// outcome is what follows from a message.
type outcome struct {
	replies []reply
	events  []Event
}

func newBook(o Options) *book {
	b := &book{Options: o, mapping: wire.FormatMapping(o.Nodes), ranks: make([]rankBook, o.Size), known: map[string]string{}}
	for _, node := range o.Nodes {
		for node >= len(b.nodes) {
			b.nodes = append(b.nodes, map[string]string{})
		}
	}
	return b
}

func (o *outcome) say(rank int, v wire.Version, cmd string, attrs ...string) {
	o.replies = append(o.replies, reply{rank, v, wire.New(cmd, attrs...)})
}

// answer is the answer to a message of PMI-2.
func (o *outcome) answer(rank int, m wire.Message, attrs ...string) {
	if thread, ok := m.Get("thrid"); ok {
		attrs = append([]string{"thrid", thread}, attrs...)
	}
	o.say(rank, wire.PMI2, m.Cmd+"-response", attrs...)
}

// handle takes a message of a rank. An error says what a rank that speaks PMI does
// not send.
func (b *book) handle(rank int, m wire.Message) (o outcome, err error) {
	r := &b.ranks[rank]
	switch {
	case r.state == Finalized:
		return o, fmt.Errorf("%q after finalize", m)
	case r.version == 0 && m.Cmd != "init":
		return o, fmt.Errorf("%q before init", m)
	case r.version == 0:
		return o, b.init(rank, m, &o)
	case r.state == Fence && m.Cmd != "abort":
		return o, fmt.Errorf("%q at a fence", m)
	case m.Cmd == "abort":
		b.abort(rank, m, &o)
		return o, nil
	case r.version == wire.PMI2:
		return o, b.handle2(rank, m, &o)
	}
	return o, b.handle1(rank, m, &o)
}

// init agrees on a version. It is a line of PMI-1 in both.
func (b *book) init(rank int, m wire.Message, o *outcome) error {
	version, err := m.Int("pmi_version")
	if err != nil {
		return err
	}
	switch version {
	case 1:
		o.say(rank, wire.PMI1, "response_to_init", "pmi_version", "1", "pmi_subversion", "1", "rc", "0")
	case 2:
		o.say(rank, wire.PMI1, "response_to_init", "pmi_version", "2", "pmi_subversion", "0", "rc", "0")
	default:
		o.say(rank, wire.PMI1, "response_to_init", "pmi_version", "1", "pmi_subversion", "1", "rc", "-1")
		return nil
	}
	b.ranks[rank].version, b.ranks[rank].state = wire.Version(version), Running
	return nil
}

// abort ends the job: there is nothing to answer.
func (b *book) abort(rank int, m wire.Message, o *outcome) {
	code, err := m.Int("exitcode")
	if err != nil {
		code = 1
	}
	why, ok := m.Get("why") // ours
	if text, err := url.QueryUnescape(why); ok && err == nil {
		why = text
	}
	for _, key := range []string{"message", "msg"} {
		if text, has := m.Get(key); has && !ok {
			why, ok = text, true
		}
	}
	o.events = append(o.events, Event{Kind: Abort, Rank: rank, Code: code, Why: why})
}

// handle1 answers what is asked in PMI-1, word for word as hydra 4.0 does.
func (b *book) handle1(rank int, m wire.Message, o *outcome) error {
	say := func(cmd string, attrs ...string) { o.say(rank, wire.PMI1, cmd, attrs...) }
	switch m.Cmd {
	case "get_maxes":
		say("maxes", "kvsname_max", strconv.Itoa(maxName), "keylen_max", strconv.Itoa(maxKey), "vallen_max", strconv.Itoa(maxValue))
	case "get_appnum":
		say("appnum", "appnum", strconv.Itoa(b.app(rank)))
	case "get_my_kvsname":
		say("my_kvsname", "kvsname", b.ID)
	case "get_universe_size":
		say("universe_size", "size", strconv.Itoa(b.Size))
	case "put":
		key, value, err := b.pair(m)
		if err != nil {
			return err
		}
		if b.other(m) || !b.keep(b.known, key, value) {
			say("put_result", "rc", "-1", "msg", "not_in_this_kvs")
			return nil
		}
		say("put_result", "rc", "0", "msg", "success")
	case "get":
		key, ok := m.Get("key")
		if !ok {
			return fmt.Errorf("%q without a key", m)
		}
		value, ok := b.value(key)
		if !ok || b.other(m) {
			say("get_result", "rc", "-1", "msg", "key_"+key+"_not_found", "value", "unknown")
			return nil
		}
		say("get_result", "rc", "0", "msg", "success", "value", value)
	case "barrier_in":
		b.arrive(rank, m, o)
	case "finalize":
		say("finalize_ack")
		b.leave(rank, o)
	case "spawn":
		// One message a program, one answer for all.
		if total, _ := m.Get("totspawns"); total != "" {
			if so, _ := m.Get("spawnssofar"); so != total {
				return nil
			}
		}
		say("spawn_result", "rc", "-1", "msg", "processes_are_not_spawned_here")
	case "publish_name", "unpublish_name", "lookup_name":
		answer := map[string]string{"publish_name": "publish_result", "unpublish_name": "unpublish_result", "lookup_name": "lookup_result"}[m.Cmd]
		say(answer, "info", "fail", "rc", "-1", "msg", "names_are_not_published_here")
	default:
		return fmt.Errorf("%q is not known", m)
	}
	return nil
}

// handle2 answers what is asked in PMI-2. An attribute thrid, which tells threads
// apart, goes back as it came.
func (b *book) handle2(rank int, m wire.Message, o *outcome) error {
	say := func(attrs ...string) { o.answer(rank, m, attrs...) }
	tell := func(value string, ok bool) {
		if !ok {
			say("found", "FALSE", "rc", "0")
			return
		}
		say("found", "TRUE", "value", value, "rc", "0")
	}
	key, hasKey := m.Get("key")
	switch m.Cmd {
	case "kvs-put", "kvs-get", "info-getjobattr", "info-getnodeattr", "info-putnodeattr":
		if !hasKey {
			return fmt.Errorf("%q without a key", m)
		}
	}
	node := b.nodes[b.Nodes[rank]]
	switch m.Cmd {
	case "fullinit":
		say("pmi-version", "2", "pmi-subversion", "0", "rank", strconv.Itoa(rank), "size", strconv.Itoa(b.Size),
			"appnum", strconv.Itoa(b.app(rank)), "debugged", "FALSE", "pmiverbose", "FALSE", "rc", "0")
	case "job-getid":
		say("jobid", b.ID, "rc", "0")
	case "kvs-put", "info-putnodeattr":
		key, value, err := b.pair(m)
		if err != nil {
			return err
		}
		to := b.known
		if m.Cmd != "kvs-put" {
			to = node
		}
		if !b.keep(to, key, value) {
			say("rc", "1", "errmsg", "no room for more keys")
			return nil
		}
		say("rc", "0")
		if m.Cmd != "kvs-put" {
			b.wake(b.Nodes[rank], key, value, o)
		}
	case "kvs-get", "info-getjobattr":
		tell(b.value(key))
	case "info-getnodeattr":
		value, ok := node[key]
		if !ok && m.True("wait") {
			b.ranks[rank].asks = m
			return nil
		}
		tell(value, ok)
	case "kvs-fence":
		b.arrive(rank, m, o)
	case "finalize":
		say("rc", "0")
		b.leave(rank, o)
	case "spawn", "job-connect", "job-disconnect", "name-publish", "name-unpublish", "name-lookup":
		say("rc", "1", "errmsg", m.Cmd+" is not done here")
	default:
		return fmt.Errorf("%q is not known", m)
	}
	return nil
}

// app is which of the job's programs a rank runs.
func (b *book) app(rank int) int {
	if len(b.Apps) == 0 {
		return 0
	}
	return b.Apps[rank]
}

// other says whether a message names another job's keys.
func (b *book) other(m wire.Message) bool {
	name, ok := m.Get("kvsname")
	return ok && name != b.ID
}

// pair is the key and value of a message, which have to be as short as processes
// were told.
func (b *book) pair(m wire.Message) (key, value string, err error) {
	key, ok := m.Get("key")
	value, has := m.Get("value")
	if !ok || !has || len(key) > maxKey || len(value) > maxValue {
		return "", "", fmt.Errorf("%q has no key and value of %d and %d characters", m, maxKey, maxValue)
	}
	return key, value, nil
}

func (b *book) keep(to map[string]string, key, value string) bool {
	if _, ok := to[key]; !ok && len(to) >= maxKeys || key == wire.MappingKey {
		return false
	}
	to[key] = value
	return true
}

// value is what there is to a key, put or known from the start.
func (b *book) value(key string) (string, bool) {
	switch key {
	case wire.MappingKey:
		return b.mapping, true
	case "universeSize":
		return strconv.Itoa(b.Size), true
	}
	value, ok := b.known[key]
	return value, ok
}

// wake answers those who wait for an attribute of their node.
func (b *book) wake(node int, key, value string, o *outcome) {
	for rank := range b.ranks {
		r := &b.ranks[rank]
		if asked, ok := r.asks.Get("key"); ok && asked == key && b.Nodes[rank] == node {
			o.answer(rank, r.asks, "found", "TRUE", "value", value, "rc", "0")
			r.asks = wire.Message{}
		}
	}
}
