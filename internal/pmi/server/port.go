package server

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/internal/pmi/wire"
)

// Bounds of unidentified connections.
const (
	helloTimeout     = 10 * time.Second
	maxHello         = 512
	maxPendingHellos = 64 // concurrent
)

// PortOptions are the parameters of a port.
type PortOptions struct {
	Address    string              // to listen on, "127.0.0.1:0" for example
	Size       int                 // ranks of the job
	Secret     string              // secret that a process must send, not empty
	IsExpected func(int) bool      // reports whether a rank may connect here; nil is any
	OnReject   func(err error)     // receives the error of each rejected connection; may be nil
	OnRank     func(int, net.Conn) // receives the connection of a rank; it must not block
}

// A Port is a TCP listener for ranks that inherit no socket; its address is their
// PMI_PORT. A process without the secret is rejected and counted.
type Port struct {
	PortOptions
	l          net.Listener
	rejected   atomic.Uint64
	helloSlots chan struct{}
	all        sync.WaitGroup

	mu           sync.Mutex
	closed       bool
	unidentified map[net.Conn]bool // connections without a hello
	connected    map[int]bool
}

// Listen opens a port.
func Listen(o PortOptions) (*Port, error) {
	if o.Secret == "" {
		return nil, errors.New("pmi port: no secret")
	}
	l, err := net.Listen("tcp", o.Address)
	if err != nil {
		return nil, err
	}
	p := &Port{PortOptions: o, l: l, helloSlots: make(chan struct{}, maxPendingHellos), unidentified: map[net.Conn]bool{}, connected: map[int]bool{}}
	p.all.Go(p.acceptLoop)
	return p, nil
}

// Addr returns the address of the port, HOST:PORT: the value of PMI_PORT.
func (p *Port) Addr() string { return p.l.Addr().String() }

// Rejected returns the number of rejected connections.
func (p *Port) Rejected() uint64 { return p.rejected.Load() }

// Close stops listening. Connections of ranks stay open.
func (p *Port) Close() error {
	p.mu.Lock()
	p.closed = true
	for c := range p.unidentified {
		c.Close()
	}
	p.mu.Unlock()
	err := p.l.Close()
	p.all.Wait()
	return err
}

func (p *Port) acceptLoop() {
	for {
		c, err := p.l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // for example out of descriptors
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if !p.register(c) {
			c.Close()
			return
		}
		p.helloSlots <- struct{}{}
		p.all.Go(func() {
			defer func() { <-p.helloSlots }()
			p.identify(c)
		})
	}
}

// register records an unidentified connection, unless the port is closed.
func (p *Port) register(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.unidentified[c] = true
	}
	return !p.closed
}

// identify reads the hello of a connection and accepts or rejects it.
func (p *Port) identify(c net.Conn) {
	rank, err := p.readHello(c)
	p.mu.Lock()
	delete(p.unidentified, c)
	if err == nil && p.connected[rank] {
		err = fmt.Errorf("rank %d: already connected", rank)
	}
	if err == nil {
		p.connected[rank] = true
	}
	closed := p.closed
	p.mu.Unlock()
	if err == nil {
		err = p.replyHello(c, rank)
	}
	if err == nil {
		p.OnRank(rank, c)
		return
	}
	defer c.Close()
	if closed {
		return
	}
	p.rejected.Add(1)
	if p.OnReject != nil {
		p.OnReject(fmt.Errorf("pmi port: %s rejected: %w", c.RemoteAddr(), err))
	}
}

// readHello reads the line in which a process identifies itself, and not one byte more.
func (p *Port) readHello(c net.Conn) (rank int, err error) {
	if err := c.SetDeadline(time.Now().Add(helloTimeout)); err != nil {
		return 0, err
	}
	var line []byte
	for one := make([]byte, 1); ; {
		if _, err := io.ReadFull(c, one); err != nil {
			return 0, fmt.Errorf("read hello: %w", err)
		}
		line = append(line, one[0])
		if one[0] == '\n' || len(line) == maxHello {
			break
		}
	}
	m, n, err := wire.Next(line)
	if err != nil {
		return 0, err
	}
	secret, _ := m.Get("secret")
	if n == 0 || m.Cmd != "initack" || subtle.ConstantTimeCompare([]byte(secret), []byte(p.Secret)) != 1 {
		return 0, errors.New("wrong secret")
	}
	if rank, err = m.Int("pmiid"); err != nil {
		return 0, errors.New("hello without a rank")
	}
	if rank < 0 || rank >= p.Size || p.IsExpected != nil && !p.IsExpected(rank) {
		return 0, fmt.Errorf("unexpected rank %d", rank)
	}
	return rank, nil
}

// replyHello sends the four lines that hydra sends.
func (p *Port) replyHello(c net.Conn, rank int) error {
	var b []byte
	for _, m := range []wire.Message{
		wire.New("initack"),
		wire.New("set", "size", strconv.Itoa(p.Size)),
		wire.New("set", "rank", strconv.Itoa(rank)),
		wire.New("set", "debug", "0"),
	} {
		var err error
		if b, err = m.Append(b, wire.PMI1); err != nil {
			return err
		}
	}
	if _, err := c.Write(b); err != nil {
		return err
	}
	return c.SetDeadline(time.Time{})
}
