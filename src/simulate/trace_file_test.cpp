#include "simulate/trace_file.hpp"

#include <gtest/gtest.h>

namespace diapause::simulate {
namespace {

std::string refused(std::string_view text) {
  const auto trace = parse_failure_trace(text, "t.csv");
  return trace ? "read" : trace.error().message;
}

TEST(TraceFile, ReadsItsOwnColumnsInAnyOrder) {
  const auto trace = parse_failure_trace(
      "class,node,time_s,repair_s,nodes\n# a comment\nnode,3,20.5,60,\n\nnodes,8,10,,4\n", "t.csv");
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->failures.size(), 2u);
  EXPECT_EQ(trace->failures[0].time_s, 10);  // they are in the order of time
  EXPECT_EQ(trace->failures[0].nodes, 4u);
  EXPECT_EQ(trace->failures[1].repair_s, 60);
  EXPECT_EQ(trace->nodes, 12u);
}

TEST(TraceFile, ReadsRecordsOfLosAlamos) {
  const auto trace = parse_failure_trace(
      "System,machine type,nodenum,nodenumz,Prob Started,Prob Fixed,Down Time\n"
      "2,cluster,1,0,6/21/05 10:54,6/21/05 11:00,6\n"
      "2,cluster,23,22,2/29/2004 0:00,,\n",
      "lanl.csv");
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->kind, TraceKind::los_alamos);
  EXPECT_EQ(trace->failures[0].first_node, 22u);
  EXPECT_EQ(trace->failures[1].repair_s, 360);
  EXPECT_EQ(trace->failures[1].time_s, 478 * 86400 + 10 * 3600 + 54 * 60);
}

TEST(TraceFile, ReadsEventsOfTheFailureTraceArchive) {
  const auto trace = parse_failure_trace(
      "#event_id\tnode_id\tevent_type\tevent_start_time\tevent_end_"
      "time\n1\t4\t1\t100\t200\n2\t4\t0\t200\t260.5\n",
      "event_trace.tab");
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->failures.size(), 1u);  // the other one is a time in which the node was available
  EXPECT_EQ(trace->failures[0].repair_s, 60.5);
}

TEST(TraceFile, RefusesWhatIsNoTraceWithTheNumberOfTheLine) {
  EXPECT_NE(refused("").find("line 0: is empty"), std::string::npos);
  EXPECT_NE(refused("a,b\n").find("line 1: names neither"), std::string::npos);
  EXPECT_NE(refused("time_s,class,node\n").find("no failure"), std::string::npos);
  EXPECT_NE(refused("time_s,class,node\n1,node,1\n-1,node,1\n").find("line 3: time_s is negative"),
            std::string::npos);
  EXPECT_NE(refused("time_s,class,node\nnan,node,1\n").find("line 2"), std::string::npos);
  EXPECT_NE(refused("time_s,class,node\n1e300,node,1\n").find("line 2"), std::string::npos);
  EXPECT_NE(refused("time_s,class,node\n1,meteor\x1b[2J,1\n").find("'meteor?[2J'"),
            std::string::npos);
  EXPECT_NE(refused("time_s,class,node\n1,node,4000000000\n").find("no whole number"),
            std::string::npos);
  EXPECT_NE(refused("time_s,class,node,nodes\n1,node,99999999,99999999\n").find("no such nodes"),
            std::string::npos);
  EXPECT_NE(refused("nodenumz,Prob Started,Prob Fixed\n1,13/1/05 0:00,\n").find("month/day/year"),
            std::string::npos);
  EXPECT_NE(refused(std::string(100000, ',')).find("200 columns"), std::string::npos);
}

}  // namespace
}  // namespace diapause::simulate
