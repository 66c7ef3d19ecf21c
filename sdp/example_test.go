package sdp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"time"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

// host is a stack with its device.
type host struct {
	*sdp.Stack
	dev *rnic.Device
}

// open returns a stack on a device with a free address of the loopback interface.
func open() host {
	dev, err := rnic.Open(rnic.Options{})
	if err != nil {
		log.Fatal(err)
	}
	stack, err := sdp.New(dev, sdp.Options{})
	if err != nil {
		log.Fatal(err)
	}
	return host{stack, dev}
}

// Close closes both.
func (h host) Close() {
	h.Stack.Close()
	h.dev.Close()
}

// A server that sends a message, and a client.
func Example() {
	there, here := open(), open()
	l, err := there.Listen("sdp", ":7471")
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		c, err := l.Accept()
		if err != nil {
			log.Fatal(err)
		}
		name, _ := bufio.NewReader(c).ReadString('\n')
		fmt.Fprintf(c, "hello, %s", name)
		c.Close() // written data arrives
	}()

	c, err := here.Dial("sdp", l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprintln(c, "sockets")
	text, err := io.ReadAll(c)
	fmt.Print(string(text))
	fmt.Println(err, c.Close())
	here.Close()
	there.Close()
	// Output:
	// hello, sockets
	// <nil> <nil>
}

// Package net/http needs a dial function, and a listener.
func ExampleStack_DialContext() {
	there, here := open(), open()
	l, err := there.Listen("sdp", ":80")
	if err != nil {
		log.Fatal(err)
	}
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "you asked for", r.URL.Path)
	}))

	client := http.Client{Transport: &http.Transport{DialContext: here.DialContext}}
	r, err := client.Get("http://" + l.Addr().String() + "/memory")
	if err != nil {
		log.Fatal(err)
	}
	text, err := io.ReadAll(r.Body)
	fmt.Print(string(text))
	fmt.Println(err)
	here.Close()
	there.Close()
	// Output:
	// you asked for /memory
	// <nil>
}

// Stats and MeasureBufferUse show why a connection is not faster.
func ExampleConn_MeasureBufferUse() {
	there, here := open(), open()
	l, err := there.Listen("sdp", ":0")
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		if c, err := l.Accept(); err == nil {
			io.Copy(io.Discard, c)
			c.Close()
		}
	}()
	conn, err := here.Dial("sdp", l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	c := conn.(*sdp.Conn)

	stop := c.MeasureBufferUse()
	for range 10_000 {
		if _, err := c.Write(make([]byte, 1000)); err != nil {
			log.Fatal(err)
		}
	}
	u, s := stop(), c.Stats()
	fmt.Fprintf(io.Discard /* os.Stdout, in your program */, "%v: %.0f %% of %d bytes in use over %v; %d Writes of %d waited; %d messages\n",
		s.FlowControl, 100*u.Send/float64(s.BufferSize), s.BufferSize, u.Over, s.Stalls, 10_000, s.MessagesSent)
	fmt.Println(s.BytesWritten, "bytes;", u.Send <= float64(s.BufferSize))
	here.Close()
	there.Close()
	// Output: 10000000 bytes; true
}

// A connection can have another flow control than the others of the stack.
func ExampleDialer() {
	there, here := open(), open()
	l, err := there.Listen("sdp", ":0")
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range []sdp.FlowControl{sdp.NIC, sdp.RDMA, sdp.Credit} {
		dialer := sdp.Dialer{Stack: here.Stack, FlowControl: &d}
		c, err := dialer.Dial("sdp", l.Addr().String())
		if err != nil {
			log.Fatal(err)
		}
		peer, err := l.Accept()
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(c.(*sdp.Conn).FlowControl(), peer.(*sdp.Conn).FlowControl())
	}
	here.Close()
	there.Close()
	// Output:
	// nic nic
	// rdma rdma
	// credit credit
}

// A program that exits waits until the peer has the last data.
func ExampleStack_Shutdown() {
	there, here := open(), open()
	l, err := there.Listen("sdp", ":0")
	if err != nil {
		log.Fatal(err)
	}
	c, err := here.Dial("sdp", l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprint(c, "the last words")
	c.Close()

	go func() { // a slow peer
		peer, err := l.Accept()
		if err != nil {
			log.Fatal(err)
		}
		text, _ := io.ReadAll(peer)
		fmt.Println(string(text))
		peer.Close()
	}()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	fmt.Println(here.Shutdown(ctx))
	here.dev.Close()
	there.Close()
	// Unordered output:
	// the last words
	// <nil>
}

// Datagrams may be lost, duplicated or reordered.
func ExampleStack_ListenPacket() {
	there, here := open(), open()
	server, err := there.ListenPacket("sdp", ":7")
	if err != nil {
		log.Fatal(err)
	}
	client, err := here.ListenPacket("sdp", ":0")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := client.WriteTo([]byte("ping"), server.LocalAddr()); err != nil {
		log.Fatal(err)
	}
	p := make([]byte, server.(*sdp.PacketConn).MTU())
	n, from, err := server.ReadFrom(p)
	fmt.Println(string(p[:n]), from.String() == client.LocalAddr().String(), err)
	here.Close()
	there.Close()
	// Output: ping true <nil>
}
