package pmi

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/softrnic/softrnic/internal/pmi/wire"
)

// maxSize is the maximum number of ranks. It bounds the memory allocated on behalf of a
// manager.
const maxSize = 1 << 22

// A client is a Manager over a connection.
type client struct {
	*conn
	protocol
	rank, size int
	id         string
	nodes      []int
	maxPart    int // maximum size of a part of a value in characters

	// Under the connection's lock.
	fenceStep int // number of completed requests of the current fence
	finalized bool
}

// joinJob joins the job. c has the rank and the size from the environment, if they are
// set there.
func (c *client) joinJob(ctx context.Context) (err error) {
	if err := c.lock(ctx); err != nil {
		return err
	}
	defer c.unlock()
	if err := c.initSession(ctx, c); err != nil {
		return err
	}
	if c.size < 1 || c.size > maxSize || c.rank < 0 || c.rank >= c.size {
		return fmt.Errorf("process manager: invalid rank %d of a job of %d", c.rank, c.size)
	}
	m, err := c.roundTrip(ctx, c.attributeRequest(wire.MappingKey))
	if err != nil {
		return err
	}
	if text, ok := c.replyValue(m); ok && text != "" {
		c.nodes, err = wire.ParseMapping(text, c.size)
		return err
	}
	// The manager has no mapping: no ranks share memory.
	c.nodes = make([]int, c.size)
	for i := range c.nodes {
		c.nodes[i] = i
	}
	return nil
}

// setLimits applies the manager's maximum lengths of keys and values.
func (c *client) setLimits(keys, values int) error {
	if longest := len(partKey(strings.Repeat("k", maxKey), maxParts)); keys < longest {
		return fmt.Errorf("process manager: key limit of %d characters, want %d", keys, longest)
	}
	if values < minPartSize {
		return fmt.Errorf("process manager: value limit of %d characters, want %d", values, minPartSize)
	}
	c.maxPart = values
	return nil
}

func (c *client) Rank() int         { return c.rank }
func (c *client) Size() int         { return c.size }
func (c *client) JobID() string     { return c.id }
func (c *client) Node(rank int) int { return c.nodes[rank] }

// lockActive acquires the lock for a request, unless the job is finalized.
func (c *client) lockActive(ctx context.Context) error {
	if err := c.lock(ctx); err != nil {
		return err
	}
	if c.finalized {
		c.unlock()
		return ErrFinalized
	}
	return nil
}

// finishPending reads the reply of a canceled request.
func (c *client) finishPending(ctx context.Context) error {
	if c.pending == nil {
		return nil
	}
	r := c.pending
	m, err := c.awaitReply(ctx)
	if err == nil && r.fence {
		c.fenceStep++
		err = c.checkFenceReply(r, m)
	}
	return err
}

// checkFenceReply returns the error of a reply within a fence.
func (c *client) checkFenceReply(r *request, m wire.Message) error {
	if r.message.Cmd == "kvs-get" { // the key is absent in either case
		return nil
	}
	if err := replyError(r, m); err != nil {
		return c.fail(err)
	}
	return nil
}

func (c *client) Put(key, value string) error {
	if err := checkPut(key, value); err != nil {
		return err
	}
	ctx := context.Background()
	if err := c.lockActive(ctx); err != nil {
		return err
	}
	defer c.unlock()
	if err := c.finishPending(ctx); err != nil {
		return err
	}
	for i, part := range encodeValue(value, c.maxPart) {
		r := c.putRequest(partKey(key, i), part)
		m, err := c.roundTrip(ctx, r)
		if err != nil {
			return err
		}
		if err := replyError(r, m); err != nil {
			return err
		}
	}
	return nil
}

func (c *client) Get(ctx context.Context, key string) (string, error) {
	if err := checkKey(key); err != nil {
		return "", err
	}
	if err := c.lockActive(ctx); err != nil {
		return "", err
	}
	defer c.unlock()
	if err := c.finishPending(ctx); err != nil {
		return "", err
	}
	part, err := c.getPart(ctx, key)
	if err != nil {
		return "", err
	}
	kind, parts, first, err := decodeHead(part)
	if err != nil {
		return "", newKeyError(key, err.Error())
	}
	var text strings.Builder
	text.WriteString(first)
	for i := 1; i < parts; i++ {
		if part, err = c.getPart(ctx, partKey(key, i)); err != nil {
			return "", err
		}
		text.WriteString(part)
	}
	value, err := decodeParts(kind, text.String())
	if err != nil {
		return "", newKeyError(key, err.Error())
	}
	return value, nil
}

func (c *client) getPart(ctx context.Context, key string) (string, error) {
	m, err := c.roundTrip(ctx, c.getRequest(key))
	if err != nil {
		return "", err
	}
	text, ok := c.replyValue(m)
	if !ok {
		return "", fmt.Errorf("key %q: %w", key, ErrNotFound)
	}
	return text, nil
}

func (c *client) Fence(ctx context.Context) error {
	if err := c.lockActive(ctx); err != nil {
		return err
	}
	defer c.unlock()
	if err := c.finishPending(ctx); err != nil {
		return err
	}
	for steps := c.fenceRequests(); c.fenceStep < len(steps); c.fenceStep++ {
		m, err := c.roundTrip(ctx, steps[c.fenceStep])
		if err != nil {
			return err
		}
		if err := c.checkFenceReply(steps[c.fenceStep], m); err != nil {
			return err
		}
	}
	c.fenceStep = 0
	return nil
}

// maxAbortReason is the maximum length of a reason in bytes: with it, a message stays
// below maxLine.
const maxAbortReason = 300

// Abort is not serialized with other requests, which may wait forever.
func (c *client) Abort(code int, cause string) error {
	version := wire.PMI1
	if _, ok := c.protocol.(protocolV2); ok {
		version = wire.PMI2
	}
	if err := c.send(c.abortMessage(code, cause[:min(len(cause), maxAbortReason)]), version); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	return nil
}

func (c *client) Finalize() error {
	ctx, cancel := context.WithTimeout(context.Background(), replyTimeout)
	defer cancel()
	if err := c.lockActive(ctx); err != nil {
		return err
	}
	defer c.unlock()
	if err := c.finishPending(ctx); err != nil {
		return err
	}
	r := c.finalizeRequest()
	m, err := c.roundTrip(ctx, r)
	if err != nil {
		return err
	}
	c.finalized = true
	return errors.Join(replyError(r, m), c.Close())
}
