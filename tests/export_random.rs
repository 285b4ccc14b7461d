//! Random trees, taken apart and released at random on several threads; random schemas; random use of streams.

mod common;
mod export;

use std::sync::Barrier;
use std::thread;

use arrow_device_abi::raw::{ArrowArray, ArrowArrayStream};
use arrow_device_abi::{OwnedSchema, SchemaNode, SchemaView, StreamFailure};
use proptest::prelude::*;
use proptest::sample::Index;

use common::Counter;
use export::cases::cases;
use export::stream::{Consumer, Produced, schema};
use export::{Bytes, Cells, Held, Tree, below, cells, fill};

/// A tree of any shape. What its types would be does not matter to those who only read its numbers and buffers.
fn trees() -> impl Strategy<Value = Tree> {
    let buffers = || prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..9)), 0..4);
    let node = |length, buffers: Vec<Bytes>, children, dictionary: Option<Tree>| Tree {
        format: String::new(),
        length,
        null_count: -1,
        offset: length / 2,
        buffers,
        children,
        dictionary: dictionary.map(Box::new),
    };
    let leaves =
        (0..9_i64, buffers()).prop_map(move |(length, buffers)| node(length, buffers, Vec::new(), None));
    leaves.prop_recursive(6, 40, 5, move |below| {
        let children = prop::collection::vec(below.clone(), 0..5);
        (0..9_i64, buffers(), children, prop::option::of(below)).prop_map(
            move |(length, buffers, children, dictionary)| node(length, buffers, children, dictionary),
        )
    })
}

/// What a consumer does next, to whichever of its nodes the index hits.
#[derive(Clone, Debug)]
enum Step {
    MoveOut(Index),
    Release(Index),
}

fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => any::<Index>().prop_map(Step::MoveOut),
        1 => any::<Index>().prop_map(Step::Release),
    ];
    prop::collection::vec(step, 0..most)
}

/// All nodes below `array` that were not moved out.
fn in_place<'a>(tree: &'a Tree, array: &ArrowArray) -> Vec<(&'a Tree, *mut ArrowArray)> {
    let mut all = Vec::new();
    for (tree, node) in below(tree, array) {
        // SAFETY: a node of a live tree.
        let array = unsafe { &*node };
        if !array.is_released() {
            all.push((tree, node));
            all.extend(in_place(tree, array));
        }
    }
    all
}

/// Does it, if there is anything to do it to. Everything that is left can be read afterwards.
fn take_step(held: &mut Vec<Held<'_>>, step: &Step) {
    match step {
        Step::MoveOut(index) => {
            let candidates: Vec<_> = held.iter().flat_map(|held| in_place(held.tree, &held.array)).collect();
            if !candidates.is_empty() {
                let (tree, node) = *index.get(&candidates);
                // SAFETY: a live node that nobody else uses.
                held.push(unsafe { Held::move_out(tree, node) });
            }
        }
        Step::Release(index) => {
            if !held.is_empty() {
                held.swap_remove(index.index(held.len())).release();
            }
        }
    }
    held.iter().for_each(Held::assert_readable);
}

proptest! {
    #![proptest_config(cases(400))]

    /// B4, B5, B6, C2, C33: whatever a consumer does in whatever order on whatever threads, what it still has can be
    /// read, and the keep-alive is dropped once, with the last node.
    #[test]
    fn trees_taken_apart(
        tree in trees(),
        first in steps(12),
        threads in prop::collection::vec(steps(8), 1..4),
        whose in any::<[u8; 16]>(),
    ) {
        let dropped = Counter::new();
        let mut held = vec![Held::new(&tree, tree.export(&dropped).into_raw())];
        held[0].assert_readable();
        for step in first {
            // The rest is done by threads, so something has to be left.
            if held.len() > 1 || matches!(step, Step::MoveOut(_)) {
                take_step(&mut held, &step);
            }
            prop_assert_eq!(dropped.get(), 0);
        }
        let mut hands: Vec<_> = threads.iter().map(|steps| (Vec::new(), steps)).collect();
        for (node, whose) in held.into_iter().zip(whose.into_iter().cycle()) {
            let thread = usize::from(whose) % hands.len();
            hands[thread].0.push(node);
        }
        let start = Barrier::new(hands.len());
        thread::scope(|scope| {
            for (mut held, steps) in hands {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    steps.iter().for_each(|step| take_step(&mut held, step));
                    held.into_iter().for_each(Held::release);
                });
            }
        });
        prop_assert_eq!(dropped.get(), 1);
    }
}

/// A schema of any shape, with any texts.
#[derive(Clone, Debug)]
struct Field {
    format: String,
    name: Option<String>,
    metadata: Vec<(Vec<u8>, Vec<u8>)>,
    flags: i64,
    children: Vec<Field>,
    dictionary: Option<Box<Field>>,
}

fn fields() -> impl Strategy<Value = Field> {
    // A format that is not known may have any children.
    let format = "x[^\0]{0,8}";
    let bytes = || prop::collection::vec(any::<u8>(), 0..9);
    let texts = move || {
        let metadata = prop::collection::vec((bytes(), bytes()), 0..4);
        (format, prop::option::of("[^\0]{0,9}"), metadata, any::<i64>())
    };
    let leaves = texts().prop_map(|(format, name, metadata, flags)| Field {
        format,
        name,
        metadata,
        flags,
        children: Vec::new(),
        dictionary: None,
    });
    leaves.prop_recursive(4, 20, 4, move |below| {
        let children = prop::collection::vec(below.clone(), 0..4);
        (texts(), children, prop::option::of(below)).prop_map(
            |((format, name, metadata, flags), children, dictionary)| Field {
                format,
                name,
                metadata,
                flags,
                children,
                dictionary: dictionary.map(Box::new),
            },
        )
    })
}

/// The pairs of each node's metadata, depth first, with what is below a node in front of it.
type Pairs<'a> = Vec<Vec<(&'a [u8], &'a [u8])>>;

impl Field {
    fn below(&self) -> impl Iterator<Item = &Self> {
        self.children.iter().chain(self.dictionary.as_deref())
    }

    fn collect<'a>(&'a self, pairs: &mut Pairs<'a>) {
        self.below().for_each(|field| field.collect(pairs));
        pairs.push(self.metadata.iter().map(|(key, value)| (&key[..], &value[..])).collect());
    }

    fn node<'a>(
        &'a self,
        pairs: &mut core::slice::Iter<'a, Vec<(&'a [u8], &'a [u8])>>,
        cells: &mut Cells<'a, SchemaNode<'a>>,
    ) -> SchemaNode<'a> {
        let mut below: Vec<_> = self.below().map(|field| field.node(pairs, cells)).collect();
        let dictionary = self.dictionary.as_ref().and_then(|_| below.pop());
        SchemaNode {
            format: &self.format,
            name: self.name.as_deref(),
            metadata: pairs.next().unwrap(),
            flags: self.flags,
            children: fill(cells, below.into_iter()),
            dictionary: fill(cells, dictionary.into_iter()).first(),
        }
    }

    fn export(&self) -> OwnedSchema {
        let mut pairs = Vec::new();
        self.collect(&mut pairs);
        let cells = cells(2 * pairs.len());
        self.node(&mut pairs.iter(), &mut cells.iter()).export().unwrap()
    }

    fn assert_read_by(&self, schema: SchemaView<'_>) {
        assert_eq!((schema.format(), schema.name()), (Ok(&*self.format), Ok(self.name.as_deref())));
        let pairs: Vec<_> =
            schema.metadata().unwrap().iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
        assert_eq!((pairs, schema.flags()), (self.metadata.clone(), self.flags));
        assert_eq!(schema.n_children(), self.children.len());
        let below: Vec<_> =
            schema.children().map(Result::unwrap).chain(schema.dictionary().unwrap()).collect();
        assert_eq!(below.len(), self.below().count());
        for (field, schema) in self.below().zip(below) {
            field.assert_read_by(schema);
        }
    }
}

/// Goes down by random steps, moving each node out of the one above, which is dropped.
fn random_part<'a>(mut field: &'a Field, mut schema: OwnedSchema, way: &[Index]) -> (&'a Field, OwnedSchema) {
    for index in way {
        let below: Vec<_> = field.below().collect();
        if below.is_empty() {
            break;
        }
        let index = index.index(below.len());
        field = below[index];
        schema = match schema.take_child(index) {
            Ok(child) => child,
            Err(_) => schema.take_dictionary().unwrap().unwrap(),
        };
    }
    (field, schema)
}

proptest! {
    #![proptest_config(cases(400))]

    /// B5, B9: any texts are read as they were given, also by a copy, and by a part of one that outlives the rest.
    #[test]
    fn schemas_copied_and_taken_apart(field in fields(), way in prop::collection::vec(any::<Index>(), 0..4)) {
        let schema = field.export();
        field.assert_read_by(schema.view().unwrap());
        let copy = schema.try_clone().unwrap();
        drop(schema);
        field.assert_read_by(copy.view().unwrap());
        let (field, part) = random_part(&field, copy, &way);
        field.assert_read_by(part.view().unwrap());
        field.assert_read_by(part.try_clone().unwrap().view().unwrap());
    }
}

/// What an iterator yields next: an array, a failure, or nothing though more may follow.
type Yield = Option<Result<i64, (i32, String)>>;

#[derive(Clone, Debug)]
enum Call {
    Next,
    Schema,
    Move,
}

fn yields() -> impl Strategy<Value = Yield> {
    prop_oneof![
        6 => (0..99_i64).prop_map(|length| Some(Ok(length))),
        1 => (1..200_i32, "[^\0]{0,9}").prop_map(|failure| Some(Err(failure))),
        1 => Just(None),
    ]
}

proptest! {
    #![proptest_config(cases(600))]

    /// S3, S4, C5: what a stream answers, call by call, from arrays to the end or a failure, and ever after.
    #[test]
    fn streams_called_at_random(
        yields in prop::collection::vec(yields(), 0..6),
        calls in prop::collection::vec(prop_oneof![4 => Just(Call::Next), 1 => Just(Call::Schema), 1 => Just(Call::Move)], 0..12),
    ) {
        let dropped = Counter::new();
        let on = dropped.clone();
        let mut source = yields.clone().into_iter();
        let items = std::iter::from_fn(move || {
            let item = source.next().flatten()?;
            Some(item.map(|length| ArrowArrayStream::array(length, &on)).map_err(|(code, text)| StreamFailure::new(code, &text)))
        });
        let mut consumer = Consumer::new(ArrowArrayStream::from_items(schema(), items));
        let mut expected = yields.into_iter();
        // The end or the failure, once it has been reached.
        let mut last: Option<Yield> = None;
        let mut arrays = 0;
        for call in calls {
            match call {
                Call::Move => consumer = consumer.moved(),
                Call::Schema => {
                    drop(consumer.schema().unwrap());
                    prop_assert_eq!(consumer.last_error(), None);
                }
                Call::Next => {
                    let next = last.clone().unwrap_or_else(|| expected.next().flatten());
                    let answer = consumer.next_length();
                    let (answered, text) = match &next {
                        Some(Ok(length)) => (Ok(*length), None),
                        Some(Err((code, text))) => (Err(*code), Some(text.clone())),
                        None => (Ok(-1), None),
                    };
                    prop_assert_eq!((answer, consumer.last_error()), (answered, text));
                    if matches!(next, Some(Ok(_))) {
                        arrays += 1;
                    } else {
                        last = Some(next);
                    }
                }
            }
        }
        consumer.release();
        prop_assert_eq!(dropped.get(), arrays);
    }
}
