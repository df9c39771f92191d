//! Reading an archive to its end without writing anything: would it be unpacked?

use std::{collections::HashMap, io::Read};

use super::{
    Trouble,
    layer::cut,
    manner::{admit, passes_over},
    reading::{count, read_all},
};
use crate::{
    files::{
        clean_member,
        tar::{Kind, Member, reader::Event},
    },
    proto::keeper::{CheckArchive, ImageDone, Manner},
    rules::PATH_MAX_BYTES,
};

/// All names together: they are held in memory.
const MAX_NAME_BYTES: usize = 256 << 20;

pub fn check(archive: &mut impl Read, options: &CheckArchive) -> Result<ImageDone, Trouble> {
    let mut tree = Tree {
        options: *options,
        manner: options.manner(),
        names: HashMap::new(),
        name_bytes: 0,
        done: ImageDone::default(),
    };
    read_all(archive, &mut |event| match event {
        Event::Member(member) => tree.add(&member),
        _ => Ok(()),
    })?;
    Ok(tree.done)
}

struct Tree {
    options: CheckArchive,
    manner: Manner,
    /// What is there so far; a hard link is what it leads to.
    names: HashMap<Vec<u8>, Kind>,
    name_bytes: usize,
    done: ImageDone,
}

impl Tree {
    fn add(&mut self, member: &Member) -> Result<(), Trouble> {
        count(&mut self.done, member, self.options.max_files, self.options.max_bytes)?;
        admit(self.manner, member)?;
        let path = clean_member(&member.path)?;
        if path.is_empty() {
            return if member.kind == Kind::Directory { Ok(()) } else { Err("a member has no name".into()) };
        }
        if passes_over(self.manner, &path, member.kind) {
            return Ok(());
        }
        let (parent, _) = cut(&path);
        if !parent.is_empty() && self.names.get(parent) != Some(&Kind::Directory) {
            return Err("a member lies below something that is no directory".into());
        }
        let kind = match member.kind {
            Kind::HardLink => match self.names.get(&clean_member(&member.target)?) {
                None | Some(Kind::Directory) => return Err("a hard link leads to nothing before it".into()),
                Some(kind) => *kind,
            },
            Kind::Symlink if member.target.is_empty() || member.target.len() > PATH_MAX_BYTES => {
                return Err("a link's target is empty or too long".into());
            }
            kind => kind,
        };
        self.name_bytes += path.len();
        if self.name_bytes > MAX_NAME_BYTES {
            return Err(Trouble::new("TOO_LARGE", "an archive's names are too many"));
        }
        match self.names.insert(path, kind) {
            None => Ok(()),
            Some(_) => Err("a name occurs twice".into()),
        }
    }
}
