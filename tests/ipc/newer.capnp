@0xa17c50e2b9d4f386;
# One struct in two versions, with every kind of field: what a peer of tomorrow would send to the strict
# reader of today.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("praefectus::newer");

enum Color { red @0; green @1; }
enum ColorNewer { red @0; green @1; blue @2; }

struct Item { number @0 :UInt16; text @1 :Text; }
struct ItemNewer { number @0 :UInt16; text @1 :Text; flag @2 :Bool; more @3 :Text; }

struct Plain {
  flag @0 :Bool;
  color @1 :Color;
  text @2 :Text;
  data @3 :Data;
  flags @4 :List(Bool);
  colors @5 :List(Color);
  texts @6 :List(Text);
  items @7 :List(Item);
  item @8 :Item;
  thing @9 :Echo;
  union {
    none @10 :Void;
    count @11 :UInt64;
    label @12 :Text;
    pair :group { left @13 :UInt32; right @14 :Text; }
  }
}

struct PlainNewer {
  flag @0 :Bool;
  color @1 :ColorNewer;
  text @2 :Text;
  data @3 :Data;
  flags @4 :List(Bool);
  colors @5 :List(ColorNewer);
  texts @6 :List(Text);
  items @7 :List(ItemNewer);
  item @8 :ItemNewer;
  thing @9 :Echo;
  union {
    none @10 :Void;
    count @11 :UInt64;
    label @12 :Text;
    pair :group { left @13 :UInt32; right @14 :Text; }
    other @17 :Void;
  }
  secondFlag @15 :Bool;
  extraText @16 :Text;
  extraNumber @18 :UInt64;
}

struct Deep { next @0 :Deep; list @1 :List(List(List(Text))); }

interface Echo {
  say @0 (data :Data) -> (data :Data);
  hold @1 () -> ();
}

interface EchoNewer {
  say @0 (data :Data, more :UInt32) -> (data :Data);
  hold @1 () -> ();
  other @2 () -> ();
}
