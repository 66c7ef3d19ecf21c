package server

import (
	"errors"
	"io"
	"net"

	"github.com/softrnic/softrnic/internal/sendqueue"
)

// maxUnread is the maximum length of the send queue of a rank in bytes: more than the
// replies to all its possible requests.
const maxUnread = 1 << 20

// errNotReading says that a rank sends requests without reading the replies.
var errNotReading = errors.New("rank does not read the replies")

// Serve serves a rank on a connection until the rank closes it or violates the
// protocol, which is the error. It closes the connection.
func (j *Job) Serve(rank int, c io.ReadWriteCloser) error {
	out := sendqueue.New(c, sendqueue.Options{Limit: maxUnread})
	defer func() {
		out.Close()
		<-out.Done()
	}()
	s, err := j.Attach(rank, out.Append)
	if err != nil {
		return err
	}
	chunk := make([]byte, 4096)
	for {
		n, err := c.Read(chunk)
		if wrong := s.Feed(chunk[:n]); wrong != nil {
			return wrong
		}
		switch {
		case errors.Is(out.Err(), sendqueue.ErrFull):
			return errNotReading
		case errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			return err
		}
	}
}
