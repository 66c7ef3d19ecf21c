package server

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/softrnic/softrnic/internal/pmi/wire"
)

// Limits announced to PMI-1 processes, as sizes of C arrays. They are those of hydra and
// Slurm.
const (
	maxName  = 256
	maxKey   = 64
	maxValue = 1024
)

// maxKeys bounds the number of keys that a job can store.
const maxKeys = 1 << 20

// A kvs is the state of a job: the state of each rank and the key-value space. It
// performs no I/O.
type kvs struct {
	Options
	mapping string
	ranks   []rankState
	values  map[string]string
	nodes   []map[string]string // attributes by node
	waiting int                 // number of ranks at the fence
	fences  int                 // completed fences
}

// A rankState is the state of one rank.
type rankState struct {
	version    wire.Version // negotiated version, or 0
	state      State
	ended      bool         // its process has ended
	fence      wire.Message // request of the current fence
	pendingGet wire.Message // request of a node attribute that is not set yet
}

// A reply is a message to a rank.
type reply struct {
	rank    int
	version wire.Version
	message wire.Message
}

// An outcome is the result of a message.
type outcome struct {
	replies []reply
	events  []Event
}

func newKVS(o Options) *kvs {
	b := &kvs{Options: o, mapping: wire.FormatMapping(o.Nodes), ranks: make([]rankState, o.Size), values: map[string]string{}}
	for _, node := range o.Nodes {
		for node >= len(b.nodes) {
			b.nodes = append(b.nodes, map[string]string{})
		}
	}
	return b
}

// addReply appends a command to rank in the syntax of v.
func (o *outcome) addReply(rank int, v wire.Version, cmd string, attrs ...string) {
	o.replies = append(o.replies, reply{rank, v, wire.New(cmd, attrs...)})
}

// replyV2 appends the reply to a PMI-2 message.
func (o *outcome) replyV2(rank int, m wire.Message, attrs ...string) {
	if thread, ok := m.Get("thrid"); ok {
		attrs = append([]string{"thrid", thread}, attrs...)
	}
	o.addReply(rank, wire.PMI2, m.Cmd+"-response", attrs...)
}

// handleMessage handles a message of a rank. It returns an error if the message
// violates the protocol.
func (b *kvs) handleMessage(rank int, m wire.Message) (o outcome, err error) {
	r := &b.ranks[rank]
	switch {
	case r.state == Finalized:
		return o, fmt.Errorf("%q after finalize", m)
	case r.version == 0 && m.Cmd != "init":
		return o, fmt.Errorf("%q before init", m)
	case r.version == 0:
		return o, b.negotiateVersion(rank, m, &o)
	case r.state == AtFence && m.Cmd != "abort":
		return o, fmt.Errorf("%q at a fence", m)
	case m.Cmd == "abort":
		b.reportAbort(rank, m, &o)
		return o, nil
	case r.version == wire.PMI2:
		return o, b.handleV2(rank, m, &o)
	}
	return o, b.handleV1(rank, m, &o)
}

// negotiateVersion agrees on a version. The message is a PMI-1 line for both versions.
func (b *kvs) negotiateVersion(rank int, m wire.Message, o *outcome) error {
	version, err := m.Int("pmi_version")
	if err != nil {
		return err
	}
	switch version {
	case 1:
		o.addReply(rank, wire.PMI1, "response_to_init", "pmi_version", "1", "pmi_subversion", "1", "rc", "0")
	case 2:
		o.addReply(rank, wire.PMI1, "response_to_init", "pmi_version", "2", "pmi_subversion", "0", "rc", "0")
	default:
		o.addReply(rank, wire.PMI1, "response_to_init", "pmi_version", "1", "pmi_subversion", "1", "rc", "-1")
		return nil
	}
	b.ranks[rank].version, b.ranks[rank].state = wire.Version(version), Running
	return nil
}

// reportAbort reports an abort event. There is no reply.
func (b *kvs) reportAbort(rank int, m wire.Message, o *outcome) {
	code, err := m.Int("exitcode")
	if err != nil {
		code = 1
	}
	cause, ok := m.Get("why") // of package pmi
	if text, err := url.QueryUnescape(cause); ok && err == nil {
		cause = text
	}
	for _, key := range []string{"message", "msg"} {
		if text, has := m.Get(key); has && !ok {
			cause, ok = text, true
		}
	}
	o.events = append(o.events, Event{Kind: Abort, Rank: rank, Code: code, Why: cause})
}

// handleV1 handles a PMI-1 request, with the replies of hydra 4.0.
func (b *kvs) handleV1(rank int, m wire.Message, o *outcome) error {
	reply := func(cmd string, attrs ...string) { o.addReply(rank, wire.PMI1, cmd, attrs...) }
	switch m.Cmd {
	case "get_maxes":
		reply("maxes", "kvsname_max", strconv.Itoa(maxName), "keylen_max", strconv.Itoa(maxKey), "vallen_max", strconv.Itoa(maxValue))
	case "get_appnum":
		reply("appnum", "appnum", strconv.Itoa(b.appNum(rank)))
	case "get_my_kvsname":
		reply("my_kvsname", "kvsname", b.ID)
	case "get_universe_size":
		reply("universe_size", "size", strconv.Itoa(b.Size))
	case "put":
		key, value, err := b.keyValue(m)
		if err != nil {
			return err
		}
		if b.namesOtherKVS(m) || !b.store(b.values, key, value) {
			reply("put_result", "rc", "-1", "msg", "not_in_this_kvs")
			return nil
		}
		reply("put_result", "rc", "0", "msg", "success")
	case "get":
		key, ok := m.Get("key")
		if !ok {
			return fmt.Errorf("%q without a key", m)
		}
		value, ok := b.lookup(key)
		if !ok || b.namesOtherKVS(m) {
			reply("get_result", "rc", "-1", "msg", "key_"+key+"_not_found", "value", "unknown")
			return nil
		}
		reply("get_result", "rc", "0", "msg", "success", "value", value)
	case "barrier_in":
		b.enterFence(rank, m, o)
	case "finalize":
		reply("finalize_ack")
		b.finalize(rank, o)
	case "spawn":
		// One message per program, one reply for all.
		if total, _ := m.Get("totspawns"); total != "" {
			if so, _ := m.Get("spawnssofar"); so != total {
				return nil
			}
		}
		reply("spawn_result", "rc", "-1", "msg", "spawning_processes_is_not_supported")
	case "publish_name", "unpublish_name", "lookup_name":
		name := map[string]string{"publish_name": "publish_result", "unpublish_name": "unpublish_result", "lookup_name": "lookup_result"}[m.Cmd]
		reply(name, "info", "fail", "rc", "-1", "msg", "publishing_names_is_not_supported")
	default:
		return fmt.Errorf("unknown command %q", m)
	}
	return nil
}

// handleV2 handles a PMI-2 request. An attribute thrid, which identifies a thread, is
// returned unchanged.
func (b *kvs) handleV2(rank int, m wire.Message, o *outcome) error {
	reply := func(attrs ...string) { o.replyV2(rank, m, attrs...) }
	replyFound := func(value string, ok bool) {
		if !ok {
			reply("found", "FALSE", "rc", "0")
			return
		}
		reply("found", "TRUE", "value", value, "rc", "0")
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
		reply("pmi-version", "2", "pmi-subversion", "0", "rank", strconv.Itoa(rank), "size", strconv.Itoa(b.Size),
			"appnum", strconv.Itoa(b.appNum(rank)), "debugged", "FALSE", "pmiverbose", "FALSE", "rc", "0")
	case "job-getid":
		reply("jobid", b.ID, "rc", "0")
	case "kvs-put", "info-putnodeattr":
		key, value, err := b.keyValue(m)
		if err != nil {
			return err
		}
		to := b.values
		if m.Cmd != "kvs-put" {
			to = node
		}
		if !b.store(to, key, value) {
			reply("rc", "1", "errmsg", "the key-value space is full")
			return nil
		}
		reply("rc", "0")
		if m.Cmd != "kvs-put" {
			b.answerPendingGets(b.Nodes[rank], key, value, o)
		}
	case "kvs-get", "info-getjobattr":
		replyFound(b.lookup(key))
	case "info-getnodeattr":
		value, ok := node[key]
		if !ok && m.Bool("wait") {
			b.ranks[rank].pendingGet = m
			return nil
		}
		replyFound(value, ok)
	case "kvs-fence":
		b.enterFence(rank, m, o)
	case "finalize":
		reply("rc", "0")
		b.finalize(rank, o)
	case "spawn", "job-connect", "job-disconnect", "name-publish", "name-unpublish", "name-lookup":
		reply("rc", "1", "errmsg", m.Cmd+" is not supported")
	default:
		return fmt.Errorf("unknown command %q", m)
	}
	return nil
}

// appNum returns the index of the program of a rank.
func (b *kvs) appNum(rank int) int {
	if len(b.Apps) == 0 {
		return 0
	}
	return b.Apps[rank]
}

// namesOtherKVS reports whether a message names the key-value space of another job.
func (b *kvs) namesOtherKVS(m wire.Message) bool {
	name, ok := m.Get("kvsname")
	return ok && name != b.ID
}

// keyValue returns the key and value of a message, and checks their lengths.
func (b *kvs) keyValue(m wire.Message) (key, value string, err error) {
	key, ok := m.Get("key")
	value, has := m.Get("value")
	if !ok || !has || len(key) > maxKey || len(value) > maxValue {
		return "", "", fmt.Errorf("%q: want key and value of at most %d and %d characters", m, maxKey, maxValue)
	}
	return key, value, nil
}

func (b *kvs) store(to map[string]string, key, value string) bool {
	if _, ok := to[key]; !ok && len(to) >= maxKeys || key == wire.MappingKey {
		return false
	}
	to[key] = value
	return true
}

// lookup returns the value of a key, put or predefined.
func (b *kvs) lookup(key string) (string, bool) {
	switch key {
	case wire.MappingKey:
		return b.mapping, true
	case "universeSize":
		return strconv.Itoa(b.Size), true
	}
	value, ok := b.values[key]
	return value, ok
}

// answerPendingGets replies to the ranks that wait for an attribute of their node.
func (b *kvs) answerPendingGets(node int, key, value string, o *outcome) {
	for rank := range b.ranks {
		r := &b.ranks[rank]
		if wanted, ok := r.pendingGet.Get("key"); ok && wanted == key && b.Nodes[rank] == node {
			o.replyV2(rank, r.pendingGet, "found", "TRUE", "value", value, "rc", "0")
			r.pendingGet = wire.Message{}
		}
	}
}
