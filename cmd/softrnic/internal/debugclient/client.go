// Package debugclient discovers and queries the debug endpoints (package
// internal/debug) of running processes.
//
//	for _, p := range must(debugclient.Discover(ctx)) {
//		fmt.Println(p.Report.Process.PID, p.Report.Counters.SentPkts)
//	}
package debugclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/softrnic/softrnic/internal/debug"
	"github.com/softrnic/softrnic/rnic"
)

// A Client queries the debug endpoint of one device, in this or another
// process.
type Client struct {
	addr string
	http http.Client
}

// responseTimeout bounds the time for a response. A stopped process never
// responds.
const responseTimeout = 3 * time.Second

// NewClient returns a client of the endpoint at addr, in the form of
// rnic.Device.DebugAddr. It does not connect yet.
func NewClient(addr string) (*Client, error) {
	a, err := debug.ParseAddress(addr)
	if err != nil {
		return nil, err
	}
	return newClient(a), nil
}

func newClient(a debug.Address) *Client {
	var dialer net.Dialer
	return &Client{addr: a.String(), http: http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, a.Network, a.Target)
		},
	}}}
}

// Addr returns the address of the endpoint.
func (c *Client) Addr() string { return c.addr }

// Report queries the device.
func (c *Client) Report(ctx context.Context) (Report, error) {
	var r Report
	err := c.getJSON(ctx, "/stat", &r)
	return r, err
}

// ErrNoQP reports that the device has no queue pair of the number.
var ErrNoQP = errors.New("no such queue pair; possibly closed")

// QP queries one queue pair with its flight recorder.
func (c *Client) QP(ctx context.Context, num uint32) (rnic.QPInfo, error) {
	var q rnic.QPInfo
	err := c.getJSON(ctx, "/qp/"+debug.FormatQPN(num)+"/history", &q)
	if no := (*statusError)(nil); errors.As(err, &no) && no.status == http.StatusNotFound {
		err = fmt.Errorf("debug endpoint %s: QP %s: %w", c.addr, debug.FormatQPN(num), ErrNoQP)
	}
	return q, err
}

// ErrEnded reports that the device of an endpoint was closed, or that its process ended.
var ErrEnded = errors.New("the device was closed, or its process ended")

// Capture makes the process write the device's packets to a new file until ctx
// ends, and calls started when the capture has started. path must be absolute.
// When Capture returns nil the file is complete. ErrEnded reports that the
// process or the device ended first: the file has the packets captured until
// then.
func (c *Client) Capture(ctx context.Context, path string, started func()) error {
	// Once started, the request outlives ctx: canceling it would end the
	// capture without confirming that the file is complete.
	request, hangUp := context.WithCancel(context.WithoutCancel(ctx))
	defer hangUp()
	stop := context.AfterFunc(ctx, hangUp)
	body, err := c.doRequest(request, http.MethodPost, "/capture?path="+url.QueryEscape(path))
	stop()
	if err != nil {
		return err
	}
	defer body.Close()
	started()
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, body)
		ended <- err
	}()
	select {
	case err := <-ended:
		if _, reportErr := c.Report(ctx); reportErr != nil {
			return fmt.Errorf("debug endpoint %s: %w", c.addr, ErrEnded)
		}
		if err == nil {
			err = fmt.Errorf("debug endpoint %s: the capture was ended by another tool", c.addr)
		}
		return err
	case <-ctx.Done():
	}
	stopCtx, cancelStop := context.WithTimeout(request, responseTimeout)
	defer cancelStop()
	response, err := c.doRequest(stopCtx, http.MethodDelete, "/capture")
	if err != nil {
		return err
	}
	response.Close()
	return <-ended
}

func (c *Client) getJSON(ctx context.Context, path string, v any) error {
	ctx, cancel := context.WithTimeout(ctx, responseTimeout)
	defer cancel()
	body, err := c.doRequest(ctx, http.MethodGet, path)
	if err != nil {
		return err
	}
	defer body.Close()
	if err := json.NewDecoder(body).Decode(v); err != nil {
		return fmt.Errorf("debug endpoint %s: %w", c.addr, err)
	}
	return nil
}

// doRequest returns the body of the response, which the caller closes.
func (c *Client) doRequest(ctx context.Context, method, path string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, nil)
	if err != nil {
		return nil, err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("debug endpoint %s: %w", c.addr, unwrapURL(err))
	}
	if res.StatusCode == http.StatusOK {
		return res.Body, nil
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(res.Body, 4096)) // a read error leaves the text incomplete
	return nil, &statusError{c.addr, res.StatusCode, strings.TrimSpace(string(bytes.ToValidUTF8(text, nil)))}
}

// A statusError is a response other than 200.
type statusError struct {
	addr   string
	status int
	text   string
}

func (r *statusError) Error() string { return fmt.Sprintf("debug endpoint %s: %s", r.addr, r.text) }

// unwrapURL removes the URL from an error of the HTTP client, because its host
// is not the endpoint.
func unwrapURL(err error) error {
	if e, ok := err.(*url.Error); ok {
		return e.Err
	}
	return err
}

// A Report is the response of /stat: the device and its process.
type Report struct {
	debug.About
	rnic.Snapshot
}

// Inspect returns the snapshot of the device.
func (r Report) Inspect() rnic.Snapshot { return r.Snapshot }
