package explore_test

func init() { realMutants = append(realMutants, simulationMutants...) }

var simulationMutants = []realMutant{
	{"a World falls asleep although a call has come", "simulation/outside.go", "x.asleep = ⟦!x.called.Load()⟧", "true", "simulation, a call and the alarm;simulation, two calls"},
	{"a call does not wake the World", "simulation/outside.go", "	w.called.Store(true)\n	if ⟦w.asleep⟧ {", "false", "simulation, a call and the alarm;simulation, two calls"},
	{"a World ends although a call has come", "simulation/outside.go", "x.closed = ⟦len(x.in) == 0⟧\n	return", "true", "simulation, a call and the alarm;simulation, two calls"},
	{"the alarm wakes nobody", "simulation/outside.go", "func (x *outside) rouseSelf() {\n	x.mu.Lock()\n	defer x.mu.Unlock()\n	if ⟦x.asleep⟧ {", "false", "simulation, a call and the alarm;simulation, two calls"},
}
