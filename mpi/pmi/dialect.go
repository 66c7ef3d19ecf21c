package pmi

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/softrnic/softrnic/internal/pmi/wire"
)

// A protocol is a version of PMI: the requests and replies of each operation.
type protocol interface {
	// initSession starts the session and reads the job's properties.
	initSession(ctx context.Context, c *client) error

	putRequest(key, value string) *request
	getRequest(key string) *request
	attributeRequest(key string) *request // of the job

	// fenceRequests returns the sequence of requests that completes when all ranks have
	// made it.
	fenceRequests() []*request

	// replyValue returns the value of a reply to getRequest or attributeRequest.
	replyValue(m wire.Message) (string, bool)

	finalizeRequest() *request
	abortMessage(code int, why string) wire.Message
}

// maxLine is the maximum length of a PMI-1 message in bytes: Slurm expects a message in
// one read of 1024 bytes.
const maxLine = 1000

// protocolV1 is PMI-1.
type protocolV1 struct{ kvsname string }

func newRequestV1(replyName, cmd string, attrs ...string) *request {
	return &request{message: wire.New(cmd, attrs...), version: wire.PMI1, reply: replyName}
}

func (d *protocolV1) initSession(ctx context.Context, c *client) error {
	init := newRequestV1("response_to_init", "init", "pmi_version", "1", "pmi_subversion", "1")
	m, err := c.roundTrip(ctx, init)
	if err != nil {
		return err
	}
	if err := replyError(init, m); err != nil {
		return err
	}
	m, err = c.roundTrip(ctx, newRequestV1("maxes", "get_maxes"))
	if err != nil {
		return err
	}
	keys, err := m.Int("keylen_max")
	if err != nil {
		return err
	}
	values, err := m.Int("vallen_max")
	if err != nil {
		return err
	}
	m, err = c.roundTrip(ctx, newRequestV1("my_kvsname", "get_my_kvsname"))
	if err != nil {
		return err
	}
	name, ok := m.Get("kvsname")
	if !ok || name == "" {
		return fmt.Errorf("process manager: no job name in %q", m)
	}
	d.kvsname, c.id = name, name
	// One byte less each: these are sizes of C arrays.
	frame := len("cmd=put kvsname= key= value=\n") + len(name)
	return c.setLimits(keys-1, min(values-1, maxLine-frame-keys))
}

func (d *protocolV1) putRequest(key, value string) *request {
	return newRequestV1("put_result", "put", "kvsname", d.kvsname, "key", key, "value", value)
}

func (d *protocolV1) getRequest(key string) *request {
	return newRequestV1("get_result", "get", "kvsname", d.kvsname, "key", key)
}

func (d *protocolV1) attributeRequest(key string) *request { return d.getRequest(key) }

func (d *protocolV1) fenceRequests() []*request {
	barrier := newRequestV1("barrier_out", "barrier_in")
	barrier.fence = true
	return []*request{barrier}
}

func (d *protocolV1) replyValue(m wire.Message) (string, bool) {
	if rc, ok := m.Get("rc"); ok && rc != "0" {
		return "", false
	}
	return m.Get("value")
}

func (d *protocolV1) finalizeRequest() *request { return newRequestV1("finalize_ack", "finalize") }

// abortMessage has the reason in an attribute of this package, escaped because PMI-1
// has no blanks.
func (d *protocolV1) abortMessage(code int, cause string) wire.Message {
	m := wire.New("abort", "exitcode", strconv.Itoa(code))
	if cause != "" {
		m = m.With("why", url.QueryEscape(cause))
	}
	return m
}

// protocolV2 is PMI-2.
type protocolV2 struct{}

func newRequestV2(cmd string, attrs ...string) *request {
	return &request{message: wire.New(cmd, attrs...), version: wire.PMI2, reply: cmd + "-response"}
}

// Limits of PMI-2, which has no request for them (PMI2_MAX_KEYLEN, PMI2_MAX_VALLEN).
const (
	maxKeyV2   = 64
	maxValueV2 = 1024
)

// absentKey is a key that is never put.
const absentKey = "-softrnic-absent"

func (protocolV2) initSession(ctx context.Context, c *client) error {
	init := newRequestV1("response_to_init", "init", "pmi_version", "2", "pmi_subversion", "0")
	m, err := c.roundTrip(ctx, init)
	if err != nil {
		return err
	}
	if err := replyError(init, m); err != nil {
		return err
	}
	if version, err := m.Int("pmi_version"); err != nil || version != 2 {
		return fmt.Errorf("process manager: PMI-2 not supported: %q", m)
	}
	full := newRequestV2("fullinit", "pmirank", strconv.Itoa(c.rank), "threaded", "TRUE")
	if id := os.Getenv("PMI_JOBID"); id != "" { // required by Slurm
		full.message = full.message.With("pmijobid", id)
	}
	if m, err = c.roundTrip(ctx, full); err != nil {
		return err
	}
	if err := replyError(full, m); err != nil {
		return err
	}
	if c.rank, err = m.Int("rank"); err != nil {
		return err
	}
	if c.size, err = m.Int("size"); err != nil {
		return err
	}
	id := newRequestV2("job-getid")
	if m, err = c.roundTrip(ctx, id); err != nil {
		return err
	}
	if err := replyError(id, m); err != nil {
		return err
	}
	name, ok := m.Get("jobid")
	if !ok || name == "" {
		return fmt.Errorf("process manager: no job name in %q", m)
	}
	c.id = name
	return c.setLimits(maxKeyV2-1, maxValueV2-1)
}

func (protocolV2) putRequest(key, value string) *request {
	return newRequestV2("kvs-put", "key", key, "value", value)
}

func (protocolV2) getRequest(key string) *request {
	return newRequestV2("kvs-get", "jobid", "", "srcid", "-1", "key", key)
}

func (protocolV2) attributeRequest(key string) *request {
	return newRequestV2("info-getjobattr", "key", key)
}

// fenceRequests also gets an absent key: hydra replies to kvs-fence at once, and delays
// a kvs-get of an absent key until all ranks have made the fence.
func (d protocolV2) fenceRequests() []*request {
	list := []*request{newRequestV2("kvs-fence"), d.getRequest(absentKey)}
	for _, r := range list {
		r.fence = true
	}
	return list
}

func (protocolV2) replyValue(m wire.Message) (string, bool) {
	if rc, ok := m.Get("rc"); ok && rc != "0" {
		return "", false
	}
	value, ok := m.Get("value")
	return value, ok && m.Bool("found")
}

func (protocolV2) finalizeRequest() *request { return newRequestV2("finalize") }

func (protocolV2) abortMessage(code int, cause string) wire.Message {
	cause = strings.NewReplacer(";", ",", "\n", " ", "\x00", " ").Replace(cause)
	return wire.New("abort", "isworld", "TRUE", "exitcode", strconv.Itoa(code), "msg", cause)
}
