package rankwire_test

import (
	"context"
	"fmt"
	"log"

	"github.com/softrnic/softrnic/internal/rankwire"
	"github.com/softrnic/softrnic/rnic"
)

// A lonelyBook is the book of a job of one rank.
type lonelyBook map[string]string

func (lonelyBook) Rank() int                                           { return 0 }
func (lonelyBook) Size() int                                           { return 1 }
func (lonelyBook) JobID() string                                       { return "job" }
func (b lonelyBook) Put(key, value string) error                       { b[key] = value; return nil }
func (b lonelyBook) Get(_ context.Context, key string) (string, error) { return b[key], nil }

func Example() {
	dev, err := rnic.Open(rnic.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	book := lonelyBook{}
	w, err := rankwire.Listen(dev, book, rankwire.Options{Name: "example", Magic: 0x45584d50})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	fmt.Println(len(book), "address published")
	// Output: 1 address published
}
