package epoll_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/internal/epoll"
)

// A wait ends when a descriptor of the set is ready, or by Wake.
func Example() {
	s, err := epoll.Open()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	in, out, err := os.Pipe()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer in.Close()
	defer out.Close()
	var events [4]unix.EpollEvent
	err = s.Add(int(in.Fd()), unix.EPOLLIN, 7)
	fmt.Println(err)
	go out.Write([]byte("x"))
	n, woken, err := s.Wait(events[:], false)
	fmt.Println(n, events[0].Fd, woken, err)
	// Output:
	// <nil>
	// 1 7 false <nil>
}

// TestWake checks that a Wake ends the current wait, or the next one if there is none, that
// several are one, and that events are returned along with it.
func TestWake(t *testing.T) {
	s, err := epoll.Open()
	require.NoError(t, err)
	defer s.Close()
	var events [4]unix.EpollEvent
	check := func(poll bool, wantN int, wantWoken bool) {
		t.Helper()
		n, woken, err := s.Wait(events[:], poll)
		require.NoError(t, err)
		require.Equal(t, wantN, n)
		require.Equal(t, wantWoken, woken)
	}
	check(true, 0, false)
	s.Wake()
	s.Wake()
	check(false, 0, true)
	check(true, 0, false)

	for range 100 {
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, woken, err := s.Wait(events[:], false)
			require.NoError(t, err)
			require.True(t, woken)
		}()
		s.Wake()
		<-done
	}

	var pipe [2]int
	require.NoError(t, unix.Pipe2(pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK))
	defer unix.Close(pipe[1])
	require.NoError(t, s.Add(pipe[0], unix.EPOLLIN, 3))
	_, err = unix.Write(pipe[1], []byte("x"))
	require.NoError(t, err)
	s.Interrupt()
	check(false, 1, true)
	require.EqualValues(t, 3, events[0].Fd)
	check(false, 1, false)
	require.NoError(t, s.Modify(pipe[0], 0, 3))
	check(true, 0, false)
	require.NoError(t, s.Modify(pipe[0], unix.EPOLLIN, 5))
	check(true, 1, false)
	require.EqualValues(t, 5, events[0].Fd)
	require.NoError(t, s.Remove(pipe[0]))
	check(true, 0, false)
	require.NoError(t, s.Add(pipe[0], unix.EPOLLIN, 6))
	check(true, 1, false)
	unix.Close(pipe[0])
	check(true, 0, false)
}
