// Package rankwire connects the ranks of a job: each publishes its addresses in the
// key-value space of the process manager and accepts connections of ranks of the same
// job, which prove it by a ticket in the private data.
//
//	w, err := rankwire.Listen(dev, book, rankwire.Options{Name: "rdma", Magic: 0x4d504931})
//	w.Serve(ctx, func(from rankwire.Ticket, r *cm.Request) { ... r.Accept(ctx, qp, ...) })
//	conn, err := w.Dial(ctx, rank, channel, qp, cm.DialOptions{})
//
// Packages mpi and acp decide which rank dials, and the purpose of each connection.
package rankwire

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/adapter"
	"github.com/softrnic/softrnic/internal/vtime"
	"github.com/softrnic/softrnic/verbs"
)

// ErrRefused is returned for connections that are not of a rank of the job.
var ErrRefused = errors.New("rankwire: not a rank of this job")

// A Book is a rank's view of its job: the key-value space of the process manager.
type Book interface {
	Rank() int
	Size() int
	JobID() string
	Put(key, value string) error
	Get(ctx context.Context, key string) (string, error)
}

// Options configure a Wire.
type Options struct {
	Name  string // of the transport, the prefix of its keys in the book
	Magic uint32 // of its tickets, first four bytes of the private data
	CM    cm.Options

	Requests bool // other ranks may call RequestDial, for ServeRequests
}

// A Wire is a rank's connection manager. All methods are safe for concurrent use.
type Wire struct {
	o        Options
	book     Book
	job      uint64
	cm       *cm.Manager
	listener *cm.Listener
	requests *cm.UDListener    // of RequestDial, or nil
	streams  adapter.Streams   // with iWARP, which has no datagrams, or nil
	kernel   adapter.Connector // for requests to dial, where the kernel connects and has no datagrams, or nil
	asked    chan int          // with iWARP: ranks that have called RequestDial
	work     vtime.Group
}

// ConnectTimeout is the time in which ranks connect.
const ConnectTimeout = 60 * time.Second

// DisconnectTimeout is the time limit of a disconnect at the end of a job, enough for one
// retransmission. The peer closes as well: if its reply got lost, it will not reply again.
const DisconnectTimeout = 600 * time.Millisecond

// Listen opens the rank's connection manager on dev and publishes its addresses.
func Listen(dev verbs.Device, book Book, o Options) (_ *Wire, err error) {
	h := fnv.New64a()
	h.Write([]byte(book.JobID()))
	w := &Wire{o: o, book: book, job: h.Sum64()}
	if w.cm, err = cm.New(dev, o.CM); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.closeManagers())
		}
	}()
	if w.listener, err = w.cm.Listen(0, cm.ListenOptions{NoUC: true}); err != nil {
		return nil, err
	}
	if w.streams = adapter.StreamsOf(dev); w.streams != nil {
		w.asked = make(chan int)
	} else if w.kernel, err = adapter.OpenConnector(dev); err != nil {
		return nil, err
	} else if w.kernel != nil {
		w.asked = make(chan int)
	} else if o.Requests {
		if w.requests, err = w.cm.ListenUD(w.listener.Addr().Port(), cm.ListenOptions{}); err != nil {
			return nil, err
		}
	}
	return w, book.Put(w.key(book.Rank()), fmt.Sprintf("%v/%d", w.listener.Addr(), w.cm.Addr().Port()))
}

// key returns the key of a rank's addresses: IP address and RDMA-CM port, of both port
// spaces, and the UDP port of the adapter.
func (w *Wire) key(rank int) string { return w.o.Name + "-" + strconv.Itoa(rank) }

// address returns the addresses that a rank has published.
func (w *Wire) address(ctx context.Context, rank int) (at netip.AddrPort, udpPort uint16, err error) {
	s, err := w.book.Get(ctx, w.key(rank))
	if err != nil {
		return at, 0, err
	}
	first, second, _ := strings.Cut(s, "/")
	if at, err = netip.ParseAddrPort(first); err != nil {
		return at, 0, err
	}
	port, err := strconv.ParseUint(second, 10, 16)
	return at, uint16(port), err
}

// A Ticket is the beginning of the private data of a connection request.
type Ticket struct {
	Rank    int
	Channel int    // purpose of the connection, as passed to Dial
	Private []byte // the private data behind the ticket
}

// TicketSize is the length of a ticket in bytes: magic, hash of the job ID, rank, channel.
const TicketSize = 20

// appendTicket appends this rank's ticket to b.
func (w *Wire) appendTicket(b []byte, channel int) []byte {
	b = binary.BigEndian.AppendUint32(b, w.o.Magic)
	b = binary.BigEndian.AppendUint64(b, w.job)
	b = binary.BigEndian.AppendUint32(b, uint32(w.book.Rank()))
	return binary.BigEndian.AppendUint32(b, uint32(channel))
}

// parseTicket decodes private data, or returns an ErrRefused if it is not of another rank
// of this job.
func (w *Wire) parseTicket(b []byte) (t Ticket, err error) {
	if len(b) < TicketSize || binary.BigEndian.Uint32(b) != w.o.Magic {
		return t, fmt.Errorf("%w: malformed ticket of %d bytes", ErrRefused, len(b))
	}
	if job := binary.BigEndian.Uint64(b[4:]); job != w.job {
		return t, fmt.Errorf("%w: job %#x, want %#x", ErrRefused, job, w.job)
	}
	rank := binary.BigEndian.Uint32(b[12:]) // an int of 32 bits would be negative from 1<<31 on
	if rank >= uint32(w.book.Size()) || int(rank) == w.book.Rank() {
		return t, fmt.Errorf("%w: invalid rank %d", ErrRefused, rank)
	}
	return Ticket{int(rank), int(binary.BigEndian.Uint32(b[16:])), b[TicketSize:]}, nil
}

// Serve starts a goroutine that calls accept, each time in one of its own, for connection
// requests of ranks of the job, and rejects others with the reason, until ctx ends or the
// wire is closed.
func (w *Wire) Serve(ctx context.Context, accept func(Ticket, *cm.Request)) {
	w.work.Go(func() {
		for {
			r, err := w.listener.Accept(ctx)
			if err != nil {
				return
			}
			w.work.Go(func() {
				switch t, err := w.parseTicket(r.PrivateData()); {
				case err != nil:
					_ = r.Reject(cm.ConsumerReject, []byte(err.Error()))
				case w.asked != nil && t.Channel == requestChannel:
					_ = r.Reject(cm.ConsumerReject, []byte("received"))
					select {
					case w.asked <- t.Rank:
					case <-ctx.Done():
					}
				default:
					accept(t, r)
				}
			})
		}
	})
}

// Dial connects qp to a rank. o.PrivateData follows the ticket.
func (w *Wire) Dial(ctx context.Context, rank, channel int, qp verbs.QP, o cm.DialOptions) (*cm.Conn, error) {
	at, udpPort, err := w.address(ctx, rank)
	if err != nil {
		return nil, err
	}
	o.UDPPort = udpPort
	o.PrivateData = append(w.appendTicket(nil, channel), o.PrivateData...)
	return w.cm.Dial(ctx, at, qp, o)
}

// requestChannel is the channel of a connection request that stands for RequestDial, without datagrams.
// The peer rejects it.
const requestChannel = 1<<31 - 1

// RequestDial asks a rank to dial this one. It returns nil when the rank has received the
// request.
func (w *Wire) RequestDial(ctx context.Context, rank int) error {
	at, udpPort, err := w.address(ctx, rank)
	if err != nil {
		return err
	}
	if w.streams != nil {
		return w.requestByStream(ctx, at)
	}
	if w.kernel != nil {
		return w.requestByKernel(ctx, at)
	}
	_, err = w.cm.DialUD(ctx, at, cm.UDDialOptions{UDPPort: udpPort, PrivateData: w.appendTicket(nil, 0)})
	if rejected := (*cm.UDRejectError)(nil); errors.As(err, &rejected) && rejected.Status == cm.UDReject {
		return nil // the rejection is the acknowledgement
	}
	return err
}

// requestByStream is RequestDial with iWARP.
func (w *Wire) requestByStream(ctx context.Context, at netip.AddrPort) error {
	conn, err := w.streams.Dial(ctx, 0, at, adapter.Reads{}, w.appendTicket(nil, requestChannel))
	if rejection := (*adapter.StreamRejection)(nil); errors.As(err, &rejection) {
		return nil // the rejection is the acknowledgement
	}
	if err == nil {
		conn.Close()
		err = fmt.Errorf("%w: %v accepted a request for a connection from there", ErrRefused, at)
	}
	return err
}

// requestByKernel is RequestDial by a connection of the kernel, which is for no queue pair.
func (w *Wire) requestByKernel(ctx context.Context, at netip.AddrPort) error {
	conn, err := w.kernel.Resolve(ctx, uint16(cm.TCP), at, 0, verbs.RC)
	if err != nil {
		return err
	}
	defer conn.Close()
	err = conn.Connect(ctx, adapter.ConnectorParam{QPN: noQueuePair(), Private: w.appendTicket(nil, requestChannel)})
	if rejection := (*adapter.ConnectorRejection)(nil); errors.As(err, &rejection) && cm.Reason(rejection.Reason) == cm.ConsumerReject {
		return nil // the rejection is the acknowledgement
	}
	if err == nil {
		err = fmt.Errorf("%w: %v accepted a request for a connection from there", ErrRefused, at)
	}
	return err
}

// requestCount counts the requests of this process by connections of the kernel.
var requestCount atomic.Uint32

// noQueuePair returns a number, far above those of queue pairs, for a request that the peer rejects. The
// kernel refuses a number that it has in another request of the same host as stale.
func noQueuePair() uint32 {
	return 0x800000 | uint32(os.Getpid())&0x7fff<<8 | requestCount.Add(1)&0xff
}

// ServeRequests starts a goroutine that calls dial with each rank that requests it by
// RequestDial, until ctx ends or the wire is closed.
func (w *Wire) ServeRequests(ctx context.Context, dial func(rank int)) {
	w.work.Go(func() {
		for w.asked != nil {
			select {
			case rank := <-w.asked:
				dial(rank)
			case <-ctx.Done():
				return
			}
		}
		for {
			r, err := w.requests.Accept(ctx)
			if err != nil {
				return
			}
			t, err := w.parseTicket(r.PrivateData())
			_ = r.Reject(cm.UDReject, []byte("received"))
			if err == nil {
				dial(t.Rank)
			}
		}
	})
}

// Notify tells the connection manager that data has arrived on qp, before the peer's RTU.
func (w *Wire) Notify(qp verbs.QP) { w.cm.Notify(qp) }

// Close closes the connection manager and waits for the goroutines of Serve and
// ServeRequests.
func (w *Wire) Close() error {
	err := w.closeManagers()
	w.work.Wait()
	return err
}

func (w *Wire) closeManagers() error {
	err := w.cm.Close()
	if w.kernel != nil {
		err = errors.Join(err, w.kernel.Close())
	}
	return err
}

// DisconnectAll disconnects connections concurrently, for at most DisconnectTimeout.
func DisconnectAll(ctx context.Context, conns []*cm.Conn) {
	ctx, cancel := vtime.WithTimeout(ctx, DisconnectTimeout)
	defer cancel()
	var ends vtime.Group
	for _, c := range conns {
		ends.Go(func() { _ = c.Disconnect(ctx, nil) })
	}
	ends.Wait()
}
