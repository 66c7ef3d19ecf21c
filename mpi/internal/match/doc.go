// Package match implements MPI message matching (MPI 4.1, section 3.5): a message goes
// to the first posted receive that matches it, and a receive takes the first matching
// unexpected message.
//
//	var receives match.Queue[*Request]
//	receives.Push(&r.node)                             // r.node.Envelope may contain Any
//	if n := receives.FindReceive(message); n != nil {  // the first match
//		receives.Remove(n)
//	}
//
// Both lookups take constant time unless wildcards (Any) are involved: a message is
// also compared with the wildcard receives posted before its exact match, and a
// wildcard receive with all messages before its match.
package match
