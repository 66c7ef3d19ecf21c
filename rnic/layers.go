package rnic

import (
	"iter"
	"slices"
	"sync"
)

// LayerInfo are the counters of a layer that runs on a device, such as package
// cm.
type LayerInfo struct {
	Name     string         `json:"name"` // "cm"
	Counters []LayerCounter `json:"counters"`
}

// LayerCounter is a counter of a layer, or a level if it also falls.
type LayerCounter struct {
	Name  string `json:"name"`
	Value uint64 `json:"value"`
	Level bool   `json:"level,omitempty"`
}

// layers are the layers that publish counters. The zero value is ready for use.
type layers struct {
	mu   sync.Mutex
	list []*layer
}

type layer struct {
	name     string
	counters iter.Seq2[string, uint64]
	levels   []string
}

// AddLayer adds the counters of a layer above the device to its snapshots, and
// thereby to `softrnic stat` and Prometheus, until remove is called, which is
// idempotent. The iterator yields the names, in snake case, and current values
// of the counters, always in the same order, as the methods All of statistics
// do; it may be called from any goroutine, with no lock of the device held.
// levels are the names of those that also fall. A nil iterator adds nothing.
func (d *Device) AddLayer(name string, counters iter.Seq2[string, uint64], levels ...string) (remove func()) {
	if counters == nil {
		return func() {}
	}
	l := &layer{name, counters, slices.Clone(levels)}
	d.layers.mu.Lock()
	defer d.layers.mu.Unlock()
	d.layers.list = append(d.layers.list, l)
	return func() {
		d.layers.mu.Lock()
		defer d.layers.mu.Unlock()
		d.layers.list = slices.DeleteFunc(d.layers.list, func(other *layer) bool { return other == l })
	}
}

// inspect returns the counters of every layer, in the order in which they were
// added.
func (l *layers) inspect() (list []LayerInfo) {
	l.mu.Lock()
	all := slices.Clone(l.list)
	l.mu.Unlock()
	for _, one := range all {
		info := LayerInfo{Name: one.name}
		for name, value := range one.counters {
			info.Counters = append(info.Counters, LayerCounter{name, value, slices.Contains(one.levels, name)})
		}
		list = append(list, info)
	}
	return list
}
