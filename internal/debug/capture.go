package debug

import (
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
)

// A captureManager runs at most one capture of a device at a time. A capture
// lasts as long as the request that started it, so that it ends with its
// client.
type captureManager struct {
	dev Device

	mu      sync.Mutex
	current *capture // nil if no capture is running
}

type capture struct {
	path string
	stop chan struct{} // closed to end it
	once sync.Once
	done chan struct{} // closed when the file is complete
	err  error         // result of StopCapture, once done
}

func addCapture(mux *http.ServeMux, dev Device, network string) {
	c := &captureManager{dev: dev}
	start, stop := c.serveStart, c.serveStop
	if network != "unix" {
		start, stop = refuseCapture, refuseCapture
	}
	mux.HandleFunc("POST /capture", start)
	mux.HandleFunc("DELETE /capture", stop)
}

func refuseCapture(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "captures need a Unix socket: a TCP port is open to every user of the machine, who could make the process write files; use SOFTRNIC_DEBUG=auto",
		http.StatusForbidden)
}

// serveStart captures until DELETE, or until the client hangs up. The header of
// the response is sent when the capture has started, the end of its body when
// the file is complete.
func (c *captureManager) serveStart(w http.ResponseWriter, r *http.Request) {
	path := r.FormValue("path")
	if !filepath.IsAbs(path) {
		http.Error(w, fmt.Sprintf("path=%q: want an absolute path", path), http.StatusBadRequest)
		return
	}
	run, err := c.startCapture(path)
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	defer c.stopCapture(run)
	fmt.Fprintf(w, "capturing to %s\n", path)
	_ = http.NewResponseController(w).Flush() // a client that has hung up ends the context
	select {
	case <-r.Context().Done():
	case <-run.stop:
	}
}

// serveStop ends the capture and responds when the file is complete.
func (c *captureManager) serveStop(w http.ResponseWriter, _ *http.Request) {
	c.mu.Lock()
	run := c.current
	c.mu.Unlock()
	if run == nil {
		http.Error(w, "no capture is running", http.StatusNotFound)
		return
	}
	run.once.Do(func() { close(run.stop) })
	<-run.done
	if run.err != nil {
		http.Error(w, run.err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprintf(w, "captured to %s\n", run.path)
}

func (c *captureManager) startCapture(path string) (*capture, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != nil {
		return nil, fmt.Errorf("a capture to %s is running", c.current.path)
	}
	if err := c.dev.StartCapture(path); err != nil {
		return nil, err
	}
	c.current = &capture{path: path, stop: make(chan struct{}), done: make(chan struct{})}
	return c.current, nil
}

func (c *captureManager) stopCapture(run *capture) {
	c.mu.Lock()
	defer c.mu.Unlock()
	run.err = c.dev.StopCapture()
	c.current = nil
	close(run.done)
}
