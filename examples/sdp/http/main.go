// The command is a web server and client of package net/http over SDP. The server serves the files of a
// directory, and the client prints one of them. On one machine:
//
//	go run ./examples/sdp/http -listen :8080              # serves this directory, prints its address
//	go run ./examples/sdp/http -get http://ADDRESS/go.mod # ADDRESS is the address printed by the server
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"

	"github.com/softrnic/softrnic/rnic"
	"github.com/softrnic/softrnic/sdp"
)

func main() {
	listen := flag.String("listen", "", "serve files at an `address`, for example :8080")
	dir := flag.String("dir", ".", "the `directory` to serve")
	get := flag.String("get", "", "write the contents of a `URL` to stdout")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *listen, *dir, *get, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, listen, dir, get string, out io.Writer) error {
	if (listen == "") == (get == "") {
		return errors.New("give -listen or -get")
	}
	dev, err := rnic.Open(rnic.Options{}) // at the address SOFTRNIC_ADDR, or on the loopback interface
	if err != nil {
		return err
	}
	defer dev.Close()
	stack, err := sdp.New(dev, sdp.Options{})
	if err != nil {
		return err
	}
	defer stack.Close()
	if listen != "" {
		return serveFiles(ctx, stack, listen, dir, out)
	}
	return copyBody(ctx, stack, get, out)
}

// serveFiles serves until ctx ends. Only the listener differs from a server over TCP.
func serveFiles(ctx context.Context, stack *sdp.Stack, addr, dir string, out io.Writer) error {
	l, err := stack.Listen("sdp", addr)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, l.Addr())
	server := http.Server{Handler: http.FileServer(http.Dir(dir))}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// copyBody writes the body of a response to out. Only DialContext differs from a client over TCP.
func copyBody(ctx context.Context, stack *sdp.Stack, url string, out io.Writer) error {
	transport := &http.Transport{DialContext: stack.DialContext}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	_, err = io.Copy(out, response.Body)
	return err
}
