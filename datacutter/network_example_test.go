package datacutter_test

import (
	"context"
	"fmt"
	"net"

	"github.com/softrnic/softrnic/datacutter"
	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

// stack makes SDP on an adapter a network for DataCutter.
type stack struct{ *sdp.Stack }

func (s stack) Listen(context.Context) (net.Listener, error) {
	return s.Stack.Listen("sdp", ":0")
}

func (s stack) Dial(ctx context.Context, addr string) (net.Conn, error) {
	return s.DialContext(ctx, "sdp", addr)
}

// Streams over RDMA.
func ExampleNetwork() {
	dev, err := rnic.Open(rnic.Options{})
	check(err)
	defer dev.Close()
	s, err := sdp.New(dev, sdp.Options{FlowControl: sdp.NIC})
	check(err)
	defer s.Close()

	send := func(ctx context.Context, w *datacutter.Work) error {
		return w.Out("words").Send([]byte("by RDMA writes"))
	}
	show := func(ctx context.Context, w *datacutter.Work) error {
		for unit, err := range w.In("words").Units() {
			if err != nil {
				return err
			}
			fmt.Printf("%s\n", unit)
		}
		return nil
	}
	group := datacutter.Group{
		Filters: []datacutter.FilterDef{{Name: "send", New: filter(send)}, {Name: "show", New: filter(show)}},
		Streams: []datacutter.Stream{{Name: "words", From: "send", To: "show", UnitSize: 64}},
	}
	_, err = datacutter.Run(context.Background(), stack{s}, datacutter.Job{Group: group, Layout: datacutter.Spread(group, 1, "a", "b")})
	check(err)
	check(s.Shutdown(context.Background()))
	// Output: by RDMA writes
}
