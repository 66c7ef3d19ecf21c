package udpraw

import (
	"os"
	"sync/atomic"
	"unsafe"

	"github.com/softrnic/softrnic/cmd/bench/internal/sharedfile"
)

// sharedCredits passes credits through a page that both processes map, so that the sockets
// carry data only.
type sharedCredits struct{ page []byte }

func openSharedCredits(path string) (creditChannel, error) {
	page, err := sharedfile.Map(path, os.Getpagesize())
	if err != nil {
		return nil, err
	}
	return &sharedCredits{page}, nil
}

// counterAt returns the i-th counter. Each has its own cache line.
func (w *sharedCredits) counterAt(i int) *uint64 { return (*uint64)(unsafe.Pointer(&w.page[64*i])) }

func (w *sharedCredits) writeCredit(c credit) error {
	atomic.StoreUint64(w.counterAt(0), c.received)
	atomic.StoreUint64(w.counterAt(1), c.round)
	return nil
}

func (w *sharedCredits) readCredit() (credit, error) {
	return credit{atomic.LoadUint64(w.counterAt(0)), atomic.LoadUint64(w.counterAt(1))}, nil
}

func (w *sharedCredits) close() error { return sharedfile.Unmap(w.page) }
