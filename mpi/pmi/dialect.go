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

// dialect is a version of the protocol: how things are asked in it.
type dialect interface {
	// join begins the session and says what the manager says of the job.
	join(ctx context.Context, c *client) error

	put(key, value string) *request
	get(key string) *request
	attribute(key string) *request // of the job

	// fence is what has to be asked, one after the other, until all ranks have
	// come.
	fence() []*request

	// value is what an answer to get or attribute says.
	value(m wire.Message) (string, bool)

	finalize() *request
	abort(code int, why string) wire.Message
}

// maxLine is how long a message of PMI-1 may be: Slurm takes what one read of 1024
// bytes gives for a message.
const maxLine = 1000

// v1 is PMI-1.
type v1 struct{ kvsname string }

func ask1(answer, cmd string, attrs ...string) *request {
	return &request{message: wire.New(cmd, attrs...), version: wire.PMI1, answer: answer}
}

func (d *v1) join(ctx context.Context, c *client) error {
	init := ask1("response_to_init", "init", "pmi_version", "1", "pmi_subversion", "1")
	m, err := c.ask(ctx, init)
	if err != nil {
		return err
	}
	if err := refused(init, m); err != nil {
		return err
	}
	m, err = c.ask(ctx, ask1("maxes", "get_maxes"))
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
	m, err = c.ask(ctx, ask1("my_kvsname", "get_my_kvsname"))
	if err != nil {
		return err
	}
	name, ok := m.Get("kvsname")
	if !ok || name == "" {
		return fmt.Errorf("the process manager gives the job no name: %q", m)
	}
	d.kvsname, c.id = name, name
	// One byte less each: in C, these are sizes of arrays.
	frame := len("cmd=put kvsname= key= value=\n") + len(name)
	return c.limit(keys-1, min(values-1, maxLine-frame-keys))
}

func (d *v1) put(key, value string) *request {
	return ask1("put_result", "put", "kvsname", d.kvsname, "key", key, "value", value)
}

func (d *v1) get(key string) *request {
	return ask1("get_result", "get", "kvsname", d.kvsname, "key", key)
}

func (d *v1) attribute(key string) *request { return d.get(key) }

func (d *v1) fence() []*request {
	barrier := ask1("barrier_out", "barrier_in")
	barrier.fence = true
	return []*request{barrier}
}

func (d *v1) value(m wire.Message) (string, bool) {
	if rc, ok := m.Get("rc"); ok && rc != "0" {
		return "", false
	}
	return m.Get("value")
}

func (d *v1) finalize() *request { return ask1("finalize_ack", "finalize") }

// abort has the reason in an attribute of our own: PMI-1 has no blanks.
func (d *v1) abort(code int, why string) wire.Message {
	m := wire.New("abort", "exitcode", strconv.Itoa(code))
	if why != "" {
		m = m.With("why", url.QueryEscape(why))
	}
	return m
}

// v2 is PMI-2.
type v2 struct{}

func ask2(cmd string, attrs ...string) *request {
	return &request{message: wire.New(cmd, attrs...), version: wire.PMI2, answer: cmd + "-response"}
}

// Sizes of PMI-2, which has no word for them (PMI2_MAX_KEYLEN, PMI2_MAX_VALLEN).
const (
	maxKey2   = 64
	maxValue2 = 1024
)

// absent is a key that nobody puts.
const absent = "-softrnic-absent"

func (v2) join(ctx context.Context, c *client) error {
	init := ask1("response_to_init", "init", "pmi_version", "2", "pmi_subversion", "0")
	m, err := c.ask(ctx, init)
	if err != nil {
		return err
	}
	if err := refused(init, m); err != nil {
		return err
	}
	if version, err := m.Int("pmi_version"); err != nil || version != 2 {
		return fmt.Errorf("the process manager does not speak PMI-2: %q", m)
	}
	full := ask2("fullinit", "pmirank", strconv.Itoa(c.rank), "threaded", "TRUE")
	if id := os.Getenv("PMI_JOBID"); id != "" { // Slurm wants it back
		full.message = full.message.With("pmijobid", id)
	}
	if m, err = c.ask(ctx, full); err != nil {
		return err
	}
	if err := refused(full, m); err != nil {
		return err
	}
	if c.rank, err = m.Int("rank"); err != nil {
		return err
	}
	if c.size, err = m.Int("size"); err != nil {
		return err
	}
	id := ask2("job-getid")
	if m, err = c.ask(ctx, id); err != nil {
		return err
	}
	if err := refused(id, m); err != nil {
		return err
	}
	name, ok := m.Get("jobid")
	if !ok || name == "" {
		return fmt.Errorf("the process manager gives the job no name: %q", m)
	}
	c.id = name
	return c.limit(maxKey2-1, maxValue2-1)
}

func (v2) put(key, value string) *request { return ask2("kvs-put", "key", key, "value", value) }

func (v2) get(key string) *request {
	return ask2("kvs-get", "jobid", "", "srcid", "-1", "key", key)
}

func (v2) attribute(key string) *request { return ask2("info-getjobattr", "key", key) }

// fence asks for what nobody has put as well: hydra answers kvs-fence at once, and
// keeps a kvs-get for an absent key waiting until all ranks have come so far.
func (d v2) fence() []*request {
	list := []*request{ask2("kvs-fence"), d.get(absent)}
	for _, r := range list {
		r.fence = true
	}
	return list
}

func (v2) value(m wire.Message) (string, bool) {
	if rc, ok := m.Get("rc"); ok && rc != "0" {
		return "", false
	}
	value, ok := m.Get("value")
	return value, ok && m.True("found")
}

func (v2) finalize() *request { return ask2("finalize") }

func (v2) abort(code int, why string) wire.Message {
	why = strings.NewReplacer(";", ",", "\n", " ", "\x00", " ").Replace(why)
	return wire.New("abort", "isworld", "TRUE", "exitcode", strconv.Itoa(code), "msg", why)
}
