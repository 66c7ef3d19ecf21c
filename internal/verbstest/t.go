package verbstest

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// T is the state of a test of the contract.
type T struct {
	testing.TB
	device *Device
	path   string     // names of the test and the subtest
	except *Exception // of this test or the one around it, or nil
}

// Run runs f as a subtest. If the table expects its failure, f must fail in that way.
func (t *T) Run(name string, f func(t *T)) {
	t.Helper()
	path := strings.TrimPrefix(t.path+"/"+name, "/")
	except := t.except
	if e := findException(t.device.Kind, path); e != nil {
		except = e
	}
	sub := func(tb testing.TB) *T { return &T{TB: tb, device: t.device, path: path, except: except} }
	real, ok := t.TB.(*testing.T)
	if !ok { // within a test that must fail
		f(sub(t.TB))
		return
	}
	real.Run(name, func(tb *testing.T) {
		if except == nil || except.Fails == "" {
			f(sub(tb))
			return
		}
		t.expectFailure(tb, except, path, f)
	})
}

// expectFailure runs f, which must fail as the exception states, and reports to tb.
func (t *T) expectFailure(tb testing.TB, except *Exception, path string, f func(t *T)) {
	r := &recorder{TB: tb}
	r.run(func() { f(&T{TB: r, device: t.device, path: path, except: except}) })
	switch text := r.String(); {
	case !r.Failed():
		tb.Errorf("passes, and the table of exceptions expects a failure for %q: remove the exception", except.Reason)
	case !regexp.MustCompile(except.Fails).MatchString(text):
		tb.Errorf("fails, but not with %q as in the table of exceptions:\n%s", except.Fails, text)
	default:
		tb.Logf("exception: %s", except.Reason)
	}
}

// explains checks the text of an error of the adapter.
func (t *T) explains(err error, text string) {
	t.Helper()
	require.Error(t, err)
	if t.device.Explains {
		require.ErrorContains(t, err, text)
	}
}

// explainsEvent checks the text of the cause of an event.
func (t *T) explainsEvent(e verbs.AsyncEvent, text string) {
	t.Helper()
	if t.device.Explains {
		require.Contains(t, e.Failure.String(), text)
	} else {
		require.Nil(t, e.Failure)
	}
}

// status returns the status that the adapter has in place of want.
func (t *T) status(want verbs.WCStatus) verbs.WCStatus {
	if t.except != nil {
		if s, ok := t.except.Statuses[want]; ok {
			return s
		}
	}
	return want
}

// count checks the number of objects, if the adapter counts them.
func (t *T) count(d verbs.Device, kind string, want int, because ...any) {
	t.Helper()
	if t.device.Count != nil {
		require.Equal(t, want, t.device.Count(d, kind), because...)
	}
}

// A recorder collects the failure of a test that must fail.
type recorder struct {
	testing.TB
	mu       sync.Mutex
	failed   bool
	text     strings.Builder
	cleanups []func()
}

// run runs f, which may end by FailNow, and the functions of Cleanup.
func (r *recorder) run(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
	for len(r.cleanups) > 0 {
		last := r.cleanups[len(r.cleanups)-1]
		r.cleanups = r.cleanups[:len(r.cleanups)-1]
		last()
	}
}

// String returns the messages of the failure.
func (r *recorder) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// Cleanup implements testing.TB.
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

// Errorf implements testing.TB.
func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
	fmt.Fprintf(&r.text, format+"\n", args...)
}

// Fail implements testing.TB.
func (r *recorder) Fail() { r.Errorf("failed") }

// Error implements testing.TB.
func (r *recorder) Error(args ...any) { r.Errorf("%s", fmt.Sprint(args...)) }

// Fatal implements testing.TB.
func (r *recorder) Fatal(args ...any) { r.Error(args...); r.FailNow() }

// Fatalf implements testing.TB.
func (r *recorder) Fatalf(format string, args ...any) { r.Errorf(format, args...); r.FailNow() }

// FailNow implements testing.TB.
func (r *recorder) FailNow() {
	r.mu.Lock()
	r.failed = true
	r.mu.Unlock()
	runtime.Goexit()
}

// Failed implements testing.TB.
func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}
