package sdpgrpc_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/softrnic/softrnic/examples/grpc/sdpgrpc"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

// newStack opens a stack on a device of its own.
func newStack(t *testing.T, o sdp.Options) *sdp.Stack {
	t.Helper()
	dev, err := rnic.Open(rnic.Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	s, err := sdp.New(dev, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// serve serves health and echo at an address, and returns the address and a function that stops the server.
func serve(t *testing.T, s *sdp.Stack, addr string) (string, *grpc.Server) {
	t.Helper()
	l, err := s.Listen("sdp", addr)
	require.NoError(t, err)
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	server.RegisterService(&echo, nil)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		require.NoError(t, <-ended)
	})
	return l.Addr().String(), server
}

func newClient(t *testing.T, s *sdp.Stack, addr string) *grpc.ClientConn {
	t.Helper()
	c, err := sdpgrpc.NewClient(s, addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// raw is a codec of uninterpreted bytes.
type raw struct{}

func (raw) Name() string                       { return "raw" }
func (raw) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v any) error { *v.(*[]byte) = bytes.Clone(data); return nil }

func init() { encoding.RegisterCodec(raw{}) }

// echo is a service with one stream, which returns the messages.
var echo = grpc.ServiceDesc{
	ServiceName: "Echo", HandlerType: (*any)(nil),
	Streams: []grpc.StreamDesc{{
		StreamName: "Echo", ServerStreams: true, ClientStreams: true,
		Handler: func(_ any, stream grpc.ServerStream) error {
			for {
				var m []byte
				if err := stream.RecvMsg(&m); errors.Is(err, io.EOF) {
					return nil
				} else if err != nil {
					return err
				}
				if err := stream.SendMsg(&m); err != nil {
					return err
				}
			}
		},
	}},
}

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// TestCalls makes many concurrent unary calls and server streams.
func TestCalls(t *testing.T) {
	for _, d := range []sdp.FlowControl{sdp.NIC, sdp.RDMA, sdp.Credit} {
		t.Run(d.String(), func(t *testing.T) {
			addr, _ := serve(t, newStack(t, sdp.Options{}), ":0")
			client := grpc_health_v1.NewHealthClient(newClient(t, newStack(t, sdp.Options{FlowControl: d}), addr))
			var all sync.WaitGroup
			for range 10 {
				all.Go(func() {
					for range 50 {
						r, err := client.Check(soon(t), &grpc_health_v1.HealthCheckRequest{})
						if err != nil || r.Status != grpc_health_v1.HealthCheckResponse_SERVING {
							t.Error(r, err)
						}
					}
				})
			}
			all.Wait()
			ctx, cancel := context.WithCancel(soon(t))
			stream, err := client.Watch(ctx, &grpc_health_v1.HealthCheckRequest{})
			require.NoError(t, err)
			_, err = stream.Recv()
			require.NoError(t, err)
			cancel()
			_, err = stream.Recv()
			require.Equal(t, codes.Canceled, status.Code(err))
		})
	}
}

// TestStreams runs several bidirectional streams of large messages on one connection.
func TestStreams(t *testing.T) {
	addr, _ := serve(t, newStack(t, sdp.Options{}), ":0")
	conn := newClient(t, newStack(t, sdp.Options{}), addr)
	var all sync.WaitGroup
	for i := range 4 {
		stream, err := conn.NewStream(soon(t), &echo.Streams[0], "/Echo/Echo", grpc.CallContentSubtype("raw"))
		require.NoError(t, err)
		rng, source := rand.New(rand.NewPCG(1, uint64(i))), rand.NewChaCha8([32]byte{byte(i)})
		var sent [][]byte
		for range 20 {
			m := make([]byte, rng.IntN(1<<19))
			_, _ = source.Read(m)
			sent = append(sent, m)
		}
		all.Go(func() {
			for i := range sent {
				if err := stream.SendMsg(&sent[i]); err != nil {
					t.Error(err)
				}
			}
			if err := stream.CloseSend(); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			for i := range sent {
				var m []byte
				if err := stream.RecvMsg(&m); err != nil || !bytes.Equal(sent[i], m) {
					t.Errorf("message %d: %d of %d bytes, %v", i, len(m), len(sent[i]), err)
				}
			}
			if err := stream.RecvMsg(new([]byte)); err != io.EOF {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestServerComesBack checks that calls fail as over TCP while the server is down, and succeed after it has
// restarted.
func TestServerComesBack(t *testing.T) {
	s := newStack(t, sdp.Options{})
	addr, server := serve(t, s, ":0")
	client := grpc_health_v1.NewHealthClient(newClient(t, newStack(t, sdp.Options{}), addr))
	_, err := client.Check(soon(t), &grpc_health_v1.HealthCheckRequest{})
	require.NoError(t, err)
	server.Stop()
	_, err = client.Check(soon(t), &grpc_health_v1.HealthCheckRequest{})
	require.Equal(t, codes.Unavailable, status.Code(err))
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	serve(t, s, ":"+port)
	_, err = client.Check(soon(t), &grpc_health_v1.HealthCheckRequest{}, grpc.WaitForReady(true))
	require.NoError(t, err)
}
