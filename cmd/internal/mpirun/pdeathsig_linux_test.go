package mpirun

// pdeathsig reports whether ranks die with an agent that is killed.
const pdeathsig = true
