// Package memberlist tests hashicorp/memberlist with its TCP and UDP transport.
package memberlist

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/braidgo/braid/simulation/services/internal/rig"
)

var nodes = []string{"a", "b", "c", "d", "e"}

// serve is the main function of a member that shows its list by HTTP. It joins each member that it finds, until it has found all.
func serve(name, _ string) error {
	addrs, err := net.LookupHost(name)
	if err != nil {
		return err
	}
	conf := memberlist.DefaultLANConfig()
	conf.Name, conf.BindAddr, conf.Logger = name, addrs[0], log.New(io.Discard, "", 0)
	conf.DeadNodeReclaimTime = time.Second
	list, err := memberlist.Create(conf)
	if err != nil {
		return err
	}
	go func() {
		for {
			if list.NumMembers() < len(nodes) {
				_, _ = list.Join(nodes)
			}
			time.Sleep(5 * time.Second)
		}
	}()
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(rw http.ResponseWriter, r *http.Request) {
		var names []string
		for _, m := range list.Members() {
			names = append(names, m.Name)
		}
		sort.Strings(names)
		fmt.Fprint(rw, strings.Join(names, " "))
	})
	return http.ListenAndServe(net.JoinHostPort(addrs[0], "80"), mux)
}

// complete waits until every member lists all members.
func complete() error {
	client := &http.Client{Timeout: time.Second}
	state := map[string]string{}
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		n := 0
		for _, name := range nodes {
			resp, err := client.Get("http://" + name + "/")
			if err != nil {
				state[name] = err.Error()
				continue
			}
			text, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if state[name] = string(text); state[name] == strings.Join(nodes, " ") {
				n++
			}
		}
		if n == len(nodes) {
			return nil
		}
	}
	return errors.New(fmt.Sprint("the members do not agree: ", state))
}

// After faults and crashes all members find each other again.
func TestMemberlist(t *testing.T) {
	rig.Run(t, 3, rig.Service{
		Nodes: nodes, Main: serve, Clients: []string{"client"}, Client: func(string) error { return nil }, Check: complete,
		Every: 2 * time.Second, Faults: 30 * time.Second,
	})
}
