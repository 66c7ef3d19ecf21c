package pmi

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/softrnic/softrnic/internal/pmi/wire"
)

// maxSize is more ranks than a job has. It bounds what a manager's word makes us
// allocate.
const maxSize = 1 << 22

// client is a Manager that is asked over a connection.
type client struct {
	*conn
	dialect
	rank, size int
	id         string
	nodes      []int
	room       int // characters of a part of a value

	// Under the connection's lock.
	fenced    int // requests of a fence that are answered
	finalized bool
}

// begin joins the job. The rank and size that the environment tells, if any, are
// in c.
func (c *client) begin(ctx context.Context) (err error) {
	if err := c.lock(ctx); err != nil {
		return err
	}
	defer c.unlock()
	if err := c.join(ctx, c); err != nil {
		return err
	}
	if c.size < 1 || c.size > maxSize || c.rank < 0 || c.rank >= c.size {
		return fmt.Errorf("the process manager says rank %d of a job of %d", c.rank, c.size)
	}
	m, err := c.ask(ctx, c.attribute(wire.MappingKey))
	if err != nil {
		return err
	}
	if text, ok := c.value(m); ok && text != "" {
		c.nodes, err = wire.ParseMapping(text, c.size)
		return err
	}
	// A manager that does not know: nobody shares memory.
	c.nodes = make([]int, c.size)
	for i := range c.nodes {
		c.nodes[i] = i
	}
	return nil
}

// limit takes the lengths of keys and values that the manager can do with.
func (c *client) limit(keys, values int) error {
	if longest := len(partKey(strings.Repeat("k", MaxKey), maxParts)); keys < longest {
		return fmt.Errorf("the process manager has keys of %d characters; need %d", keys, longest)
	}
	if values < minPart {
		return fmt.Errorf("the process manager has room for %d characters in a value; need %d", values, minPart)
	}
	c.room = values
	return nil
}

func (c *client) Rank() int         { return c.rank }
func (c *client) Size() int         { return c.size }
func (c *client) JobID() string     { return c.id }
func (c *client) Node(rank int) int { return c.nodes[rank] }

// use takes the lock for a request, if there can be any.
func (c *client) use(ctx context.Context) error {
	if err := c.lock(ctx); err != nil {
		return err
	}
	if c.finalized {
		c.unlock()
		return ErrFinalized
	}
	return nil
}

// settled reads the answer that a call has left behind which was given up.
func (c *client) settled(ctx context.Context) error {
	if c.owed == nil {
		return nil
	}
	r := c.owed
	m, err := c.settle(ctx)
	if err == nil && r.fence {
		c.fenced++
		err = c.fenceAnswer(r, m)
	}
	return err
}

// fenceAnswer is the error of an answer within a fence.
func (c *client) fenceAnswer(r *request, m wire.Message) error {
	if r.message.Cmd == "kvs-get" { // it is absent, one way or the other
		return nil
	}
	if err := refused(r, m); err != nil {
		return c.fail(err)
	}
	return nil
}

func (c *client) Put(key, value string) error {
	if err := checkPut(key, value); err != nil {
		return err
	}
	ctx := context.Background()
	if err := c.use(ctx); err != nil {
		return err
	}
	defer c.unlock()
	if err := c.settled(ctx); err != nil {
		return err
	}
	for i, part := range encodeValue(value, c.room) {
		r := c.put(partKey(key, i), part)
		m, err := c.ask(ctx, r)
		if err != nil {
			return err
		}
		if err := refused(r, m); err != nil {
			return err
		}
	}
	return nil
}

func (c *client) Get(ctx context.Context, key string) (string, error) {
	if err := checkKey(key); err != nil {
		return "", err
	}
	if err := c.use(ctx); err != nil {
		return "", err
	}
	defer c.unlock()
	if err := c.settled(ctx); err != nil {
		return "", err
	}
	part, err := c.getPart(ctx, key)
	if err != nil {
		return "", err
	}
	kind, parts, first, err := decodeHead(part)
	if err != nil {
		return "", &KeyError{key, err.Error()}
	}
	var text strings.Builder
	text.WriteString(first)
	for i := 1; i < parts; i++ {
		if part, err = c.getPart(ctx, partKey(key, i)); err != nil {
			return "", err
		}
		text.WriteString(part)
	}
	value, err := decodeText(kind, text.String())
	if err != nil {
		return "", &KeyError{key, err.Error()}
	}
	return value, nil
}

func (c *client) getPart(ctx context.Context, key string) (string, error) {
	m, err := c.ask(ctx, c.get(key))
	if err != nil {
		return "", err
	}
	text, ok := c.value(m)
	if !ok {
		return "", fmt.Errorf("key %q: %w", key, ErrNotFound)
	}
	return text, nil
}

func (c *client) Fence(ctx context.Context) error {
	if err := c.use(ctx); err != nil {
		return err
	}
	defer c.unlock()
	if err := c.settled(ctx); err != nil {
		return err
	}
	for steps := c.fence(); c.fenced < len(steps); c.fenced++ {
		m, err := c.ask(ctx, steps[c.fenced])
		if err != nil {
			return err
		}
		if err := c.fenceAnswer(steps[c.fenced], m); err != nil {
			return err
		}
	}
	c.fenced = 0
	return nil
}

// abortMax is how much of a reason is told: with it, a message stays below
// maxLine.
const abortMax = 300

// Abort writes in between: whoever waits may wait for what never comes.
func (c *client) Abort(code int, why string) error {
	version := wire.PMI1
	if _, ok := c.dialect.(v2); ok {
		version = wire.PMI2
	}
	if err := c.send(c.abort(code, why[:min(len(why), abortMax)]), version); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	return nil
}

func (c *client) Finalize() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.use(ctx); err != nil {
		return err
	}
	defer c.unlock()
	if err := c.settled(ctx); err != nil {
		return err
	}
	r := c.finalize()
	m, err := c.ask(ctx, r)
	if err != nil {
		return err
	}
	c.finalized = true
	return errors.Join(refused(r, m), c.Close())
}
